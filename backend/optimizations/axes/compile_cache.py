"""Where compiled code is cached: torch's caches on disk, an empty one, or saved artefacts."""

from tokendyno.backend.optimizations.base import Choice, Optimization, note
from tokendyno.backend.optimizations.shared_rules import needs_compile
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

_DOCS = "https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html"

_RULES = needs_compile(
    "Nothing is compiled in this arm, so there is nothing to cache.", _DOCS, "there is nothing to cache"
)
_PICKLES = note(
    lambda s: s.compiles,
    "Artefacts hold generated code and pickles, which run when they are loaded: they are kept in a private folder "
    "(TOKENDYNO_CACHE), and files that others could have written are ignored.",
    "backend/worker/compiler/artefacts.py",
)


class CompileCache(Optimization):
    name = "compile_cache"
    title = "Compile cache"
    summary = "Where compiled code is cached; the cold compile time depends on it."
    default = "torch"
    sets = "generate.compile_cache"
    order = 48
    aliases = {"": ("TORCHINDUCTOR_CACHE_DIR",), "artefacts": ("save_cache_artifacts", "load_cache_artifacts")}
    wish = "start"
    wishes = {"fresh": "reference"}
    costs = {"fresh": "everything is compiled again", "artefacts": "disk; a run that saves them first"}
    choices = (
        Choice(
            "torch",
            "torch's caches on disk, shared by all workers: what one of them has compiled is not compiled again.",
            title="torch's caches",
        ),
        Choice(
            "fresh",
            "An empty cache, deleted with the worker: the cold compile time is that of a first start.",
            _RULES,
            title="empty",
        ),
        Choice(
            "artefacts",
            "An empty cache filled with artefacts that an earlier run saved after its warm-up.",
            (*_RULES, _PICKLES),
        ),
    )

    def write(self, script: Script, plan: Plan) -> None:
        kind = plan.generate.compile_cache
        if kind == "torch" or plan.generate.compile_mode is None:
            return
        script.imports |= {"import os", "import tempfile"}
        script.prepare += [
            "caches = tempfile.TemporaryDirectory()  # an empty cache: nothing is compiled yet",
            'os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(caches.name, "inductor")',
            'os.environ["TRITON_CACHE_DIR"] = os.path.join(caches.name, "triton")',
        ]
        if kind == "artefacts":
            script.imports.add("from pathlib import Path")
            script.prepare += [
                'artefacts = Path("artefacts.bin")  # holds pickles: load only your own',
                "if artefacts.exists():",
                "    torch.compiler.load_cache_artifacts(artefacts.read_bytes())",
            ]
            script.finish += [
                "saved = torch.compiler.save_cache_artifacts()",
                "if saved is not None:",
                "    artefacts.write_bytes(saved[0])",
            ]
