"""Where compiled code comes from and goes to: torch's cache on disk, an empty one, or artefacts that were saved."""

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.optimizations.compile import compiles, skipped
from backend.plan import CompileCacheKind, Plan
from backend.script import Script

_DOCS = "https://docs.pytorch.org/tutorials/recipes/torch_compile_caching_tutorial.html"
_KINDS: dict[str, CompileCacheKind] = {"torch": "torch", "fresh": "fresh", "artefacts": "artefacts"}


def _needs_compile(kind: str) -> Rule:
    fix = (("compile", "default"), ("cache", "static")) if kind == "decoder" else (("compile", "default"),)
    return Rule(
        "blocked",
        lambda s: s.facts.kind == kind and not compiles(s) and not skipped(s),
        "Nothing is compiled in this arm, so there is nothing to cache.",
        _DOCS,
        fix=fix,
    )


_RULES = (
    _needs_compile("decoder"),
    _needs_compile("encoder"),
    Rule(
        "blocked",
        skipped,
        "generate does not compile a model that is quantized in this way, so there is nothing to cache.",
        "backend/optimizations/compile.py: skipped",
        fix=(("compile_cache", "torch"),),
    ),
)
_PICKLES = Rule(
    "note",
    compiles,
    "Artefacts hold generated code and pickles, which run when they are loaded: they are kept in a folder that is "
    "yours alone (TOKENDYNO_CACHE), and a file that others could have written is ignored.",
    "backend/worker/artefacts.py",
)


class CompileCache(Optimization):
    """Told apart by how many graphs came from a cache, by the bytes of artefacts, and by where generated code lies."""

    name = "compile_cache"
    title = "Compile cache"
    summary = "Where compiled code is taken from and kept: what the cold seconds mean depends on it."
    default = "torch"
    order = 48
    choices = (
        Choice("torch", "torch's own", "torch's cache on disk as it stands: what it holds is not compiled again."),
        Choice(
            "fresh",
            "empty",
            "An empty cache for this worker, removed with it: cold seconds are those of a first start.",
            _RULES,
        ),
        Choice(
            "artefacts",
            "artefacts",
            "An empty cache filled from artefacts of an earlier run, which saved them after its warm-up.",
            (*_RULES, _PICKLES),
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return msgspec.structs.replace(
            plan, generate=msgspec.structs.replace(plan.generate, compile_cache=_KINDS[name])
        )

    def write(self, script: Script, plan: Plan) -> None:
        kind = plan.generate.compile_cache
        if kind == "torch" or plan.generate.compile_mode is None:
            return
        script.imports |= {"import os", "import tempfile"}
        script.prepare += [
            "caches = tempfile.TemporaryDirectory()  # an empty cache: nothing was compiled before",
            'os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(caches.name, "inductor")',
            'os.environ["TRITON_CACHE_DIR"] = os.path.join(caches.name, "triton")',
        ]
        if kind == "artefacts":
            script.imports.add("from pathlib import Path")
            script.prepare += [
                'artefacts = Path("artefacts.bin")  # holds pickles: load none but your own',
                "if artefacts.exists():",
                "    torch.compiler.load_cache_artifacts(artefacts.read_bytes())",
            ]
            script.finish += [
                "saved = torch.compiler.save_cache_artifacts()",
                "if saved is not None:",
                "    artefacts.write_bytes(saved[0])",
            ]

    def find(self, seen: Seen) -> Finding:
        """What was counted since these settings were first used in this worker."""
        count = seen.counts.get
        hits, misses = count("fx_cache_hits", 0), count("fx_cache_misses", 0)
        told = f"{hits:.0f} graphs came from a cache, {misses:.0f} were compiled"
        cold_s, before_s = count("compile_cold_s", 0), count("artefacts_cold_s", 0)
        loaded, saved = count("artefacts_loaded_bytes", 0), count("artefacts_saved_bytes", 0)
        own = count("own_code_files", 0)
        if own and loaded and hits:
            told += f"; {loaded:,.0f} bytes of artefacts loaded: {cold_s:.1f} s instead of {before_s:.1f} s"
            return Finding(self.name, "artefacts", told)
        if own and saved:
            told += f" in {cold_s:.1f} s; {saved:,.0f} bytes of artefacts saved for the next worker"
            return Finding(self.name, "artefacts", told)
        if own and misses and not hits:
            told += f" in {cold_s:.1f} s; {own:.0f} files of generated code lie in the scratch folder of this worker"
            return Finding(self.name, "fresh", told)
        return Finding(self.name, "torch", told)


AXIS = CompileCache()
