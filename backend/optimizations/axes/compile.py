"""Whether the decode step is compiled by torch.compile, and in which mode."""

from tokendyno.backend.optimizations.base import Choice, Optimization, blocked, divided, fallback, note
from tokendyno.backend.optimizations.shared_rules import NOT_ON_ZERO_GPU, needs_compiler
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import CompileValues, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import quoted

_MODE_VALUES = {
    "fullgraph": ("false", "true"),
    "dynamic": ("auto", "true", "false"),
    "graph_break": ("none", "print", "branch"),
}
_OPTIONS = {
    "coordinate_descent_tuning": ("false", "true"),
    "epilogue_fusion": ("true", "false"),
    "shape_padding": ("true", "false"),
    "combo_kernels": ("false", "true"),
}
"""Inductor's options in torch.compile(options={...}). A mode is a set of such options: torch refuses both together."""
_VALUES = {**_MODE_VALUES, "backend": ("inductor", "aot_eager", "eager"), **_OPTIONS}  # modes are Inductor's alone

_GRAPHS_NEED_STATIC = blocked(
    lambda s: s.cuda and _compiles_growing(s),
    "CUDA graphs of torch.compile write each step's keys and values over those of the step before, which a growing "
    "cache still needs.",
    "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html",
    fix=(("cache", "static"),),
)
_CACHE_RULES = (
    NOT_ON_ZERO_GPU,
    blocked(
        lambda s: s.decoder and s.own_loop and "compile" in s.values,
        "fullgraph, backend, dynamic and options are what generate hands to torch.compile, and graph_break breaks what "
        "it compiles; the custom decode loop compiles a step of its own.",
        "backend/worker/loop/loop.py",
        fix=(("loop", "generate"),),
    ),
    blocked(
        lambda s: (
            s.value("compile", "backend") in ("aot_eager", "eager")
            and any(s.value("compile", option) for option in _OPTIONS)
        ),
        "These options are Inductor's: torch hands them to the backend, and this one takes none.",
        "torch.compile(options=...)",
        fix=(("compile", "default"),),
    ),
    blocked(
        lambda s: s.choices["shapes"] == "dynamic" and s.value("compile", "dynamic") == "false",
        "shapes=dynamic asks for symbolic shapes, and dynamic=false for none.",
        "torch.compile(dynamic=...)",
        fix=(("shapes", "exact"),),
    ),
    needs_compiler(lambda s: not s.skips_compilation),
    blocked(
        lambda s: s.decoder and not s.own_loop and not s.cache.fixed and not _grows_unquantized(s),
        "generate compiles the decode step on a static cache only; with an offloaded or quantized one it silently "
        "skips compilation.",
        "https://huggingface.co/docs/transformers/llm_optims#static-kv-cache-and-torchcompile",
        fix=(("cache", "static"),),
    ),
    note(
        lambda s: _compiles_growing(s),
        "With a growing cache each new length is a new shape: the model is compiled again, up to 8 times, also in the "
        "middle of a text, and then goes on with symbolic lengths, or uncompiled. A run that holds this is slower than "
        "without torch.compile. Set cache=static, which is compiled once.",
        "https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html",
    ),
)
_UNTUNED_INT8 = note(
    lambda s: (
        s.cuda
        and s.choices["quantization"] == "torchao-int8"
        and s.value("compile", "coordinate_descent_tuning") != "true"
    ),
    "Without coordinate descent tuning, which the modes max-autotune turn on, torch.compile computes torchao's int8 "
    "products with a kernel that takes 16 times as long as bfloat16 does on an H200, one token at a time.",
    "torch._inductor.list_mode_options; lab/measurements.md: seven products of a layer of Llama-3-8B",
)
_SKIPPED = fallback(
    lambda s: s.skips_compilation,
    "generate does not compile models quantized with bitsandbytes, quanto, MXFP4, GPTQ or AWQ: it silently skips "
    "compilation.",
    "transformers 5.22: GenerationMixin._valid_auto_compile_criteria, HfQuantizer.is_compileable",
    becomes="off",
)
_LIKE_DEFAULT = fallback(
    lambda s: not s.cuda and not s.skips_compilation,
    "On a CPU there are no CUDA graphs and no kernels to autotune: this mode generates the same code as default.",
    "tests/backend/worker/compiler/test_ledger.py: the generated code of all modes is the same",
    becomes="default",
)
_MODULE_CODE = "torch 2.13: OptimizedModule.__getattr__; transformers 5.22: GenerationMixin._sample"
_MODULE_RULES = (
    NOT_ON_ZERO_GPU,
    blocked(
        lambda s: not s.decoder,
        "An encoder's forward pass is compiled by torch.compile(model) as by the mode default.",
        _MODULE_CODE,
        fix=(("compile", "default"),),
    ),
    blocked(
        lambda s: s.decoder and s.own_loop,
        "torch.compile(model) is followed by generate, which the custom decode loop does not call.",
        _MODULE_CODE,
        fix=(("loop", "generate"),),
    ),
    note(
        lambda s: s.decoder,
        "generate is a method of the model inside the compiled module, and calls that model: nothing is compiled. "
        "To compile the decode step, set compile=default and cache=static.",
        _MODULE_CODE,
    ),
)


def _grows_unquantized(s: Subject) -> bool:
    cache = s.cache
    return cache.grows and not cache.offloaded and not cache.quantized


def _compiles_growing(s: Subject) -> bool:
    runs = not s.own_loop and not s.batches_continuously and not s.skips_compilation
    return s.decoder and runs and _grows_unquantized(s)


class Compile(Optimization):
    name = "compile"
    title = "torch.compile"
    summary = "Compile the decode step (prefill stays eager), or an encoder's forward pass."
    default = "off"
    off = "off"
    order = 40
    leading = True
    wishes = {"module": "reference"}
    aliases = {
        "": (
            "fullgraph",
            "CompileConfig",
            "compile_config",
            "disable_compile",
            "torch.compile",
            "options",
            *_OPTIONS,
            "graph break",
            "model.compile",
            "inductor",
            "dynamo",
        ),
        "module": ("torch.compile(model)", "OptimizedModule"),
    }
    costs = {
        "default": "seconds to a minute to compile, with a growing cache again for new lengths",
        "reduce-overhead": "time to compile, memory for graphs",
        "max-autotune": "minutes to compile",
        "max-autotune-no-cudagraphs": "minutes to compile, with a growing cache again for new lengths",
    }
    choices = (
        Choice("off", "Eager: every operator is launched from Python."),
        Choice(
            "default", "Inductor kernels, no CUDA graphs.", (*_CACHE_RULES, _SKIPPED, _UNTUNED_INT8), values=_VALUES
        ),
        Choice(
            "reduce-overhead",
            "Inductor kernels replayed as CUDA graphs.",
            (*_CACHE_RULES, _GRAPHS_NEED_STATIC, _SKIPPED, _LIKE_DEFAULT, _UNTUNED_INT8),
            values=_MODE_VALUES,
        ),
        Choice(
            "max-autotune",
            "Autotuned kernels replayed as CUDA graphs; takes minutes to compile.",
            (*_CACHE_RULES, _GRAPHS_NEED_STATIC, _SKIPPED, _LIKE_DEFAULT),
            values=_MODE_VALUES,
        ),
        Choice(
            "max-autotune-no-cudagraphs",
            "Autotuned kernels, launched one by one.",
            (*_CACHE_RULES, _SKIPPED, _LIKE_DEFAULT),
            values=_MODE_VALUES,
            title="max-autotune, no CUDA graphs",
        ),
        Choice(
            "module",
            "torch.compile(model) outside of generate, as guides write it: generate compiles nothing then.",
            _MODULE_RULES,
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        name, values = divided(name)
        given = CompileValues(
            fullgraph=values.get("fullgraph") == "true",
            backend=values.get("backend", "inductor"),
            dynamic={"true": True, "false": False}.get(values.get("dynamic", "")),
            options=tuple((option, values[option] == "true") for option in _OPTIONS if option in values),
            graph_break=values.get("graph_break", ""),
        )
        mode = None if name in ("off", "module") else name
        return plan.with_generate(compile_mode=mode, compile_module=name == "module", compile_values=given)

    def write(self, script: Script, plan: Plan) -> None:
        """The custom decode loop compiles its step itself: see `loop`."""
        generate = plan.generate
        if generate.compile_module:
            script.patch.append("model = torch.compile(model)")
        if generate.compile_mode is None or generate.loop == "own":
            return
        values = generate.compile_values
        keywords = f"mode=None, options={dict(values.options)}" if values.options else f'mode="{generate.compile_mode}"'
        dynamic = True if generate.shapes == "dynamic" else values.dynamic
        keywords += f", dynamic={dynamic}" if dynamic is not None else ""
        keywords += ", fullgraph=True" if values.fullgraph else ""
        keywords += f', backend="{values.backend}"' if values.backend != "inductor" else ""
        if values.graph_break:
            script.patched(
                "worker/compiler/graph_break.py", f"break_graph(model, {quoted(values.graph_break)})  # on purpose"
            )
        script.imports.add("from transformers import CompileConfig")
        script.patch.append(f"compile_config = CompileConfig({keywords})")
        if plan.load.device == "cpu" and generate.cache.fixed:
            script.patch.append(
                "compile_config._compile_all_devices = True  # otherwise generate skips compilation on a CPU"
            )
        script.generate["compile_config"] = "compile_config"
