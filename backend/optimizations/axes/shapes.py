"""Which sequence lengths the model sees: exact, padded, or symbolic."""

from tokendyno.backend.optimizations.base import Choice, Optimization, blocked, note
from tokendyno.backend.optimizations.shared_rules import needs_compile
from tokendyno.backend.plan import GRAPH_MODES, Plan
from tokendyno.backend.predict.lengths import LAST_DOUBLED, PADDED
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import quoted

_GUIDE = "https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html"

_NO_FLEX = blocked(
    lambda s: not s.cuda and s.choices["attention"] == "flex_attention",
    "On a CPU torch cannot compile flex_attention for a padded prompt: the generated C++ does not build.",
    "measured with torch 2.13: CppCompileError",
    fix=(("attention", "auto"),),
)
_ONLY_WASTE = note(
    lambda s: not s.compiles, "Nothing is compiled, so padding saves no recompilation and only costs time.", _GUIDE
)
_PADDING = (_NO_FLEX, _ONLY_WASTE)


_DYNAMIC = (
    *needs_compile(
        "Symbolic shapes are an option of compilation, and nothing is compiled.",
        _GUIDE,
        "there are no symbolic shapes",
    ),
    blocked(
        lambda s: s.own_loop,
        "The custom decode loop has fixed shapes and compiles its step for exactly these.",
        "backend/worker/loop/loop.py",
        fix=(("loop", "generate"),),
    ),
    note(
        lambda s: s.cuda and s.choices["compile"] in GRAPH_MODES,
        "CUDA graphs have fixed shapes: with symbolic ones a new graph is captured for each length.",
        "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html",
    ),
)


class Shapes(Optimization):
    name = "shapes"
    title = "Shapes"
    summary = "Lengths of prompt and static cache: fewer distinct lengths mean fewer recompilations and more padding."
    default = "exact"
    sets = "generate.shapes"
    off = "exact"
    witness = "kv"
    order = 46
    wish = "start"
    aliases = {"": ("pad_to_multiple_of",), "dynamic": ("mark_dynamic",)}
    costs = {
        "padded": "work on padding",
        "buckets": "some work on padding",
        "dynamic": "slower kernels than for one shape",
    }
    choices = (
        Choice("exact", "No padding: a compiled step is recompiled for each new length."),
        Choice(
            "padded", f"Prompt and cache padded to a multiple of {PADDED}: one length for nearly all prompts.", _PADDING
        ),
        Choice(
            "buckets",
            f"Prompt and cache padded to 64, 128, ... {LAST_DOUBLED}, then to multiples of {LAST_DOUBLED}.",
            _PADDING,
        ),
        Choice("dynamic", "Compiled once with symbolic shapes: one graph for all lengths.", _DYNAMIC),
    )

    def write(self, script: Script, plan: Plan) -> None:
        kind = plan.generate.shapes
        if kind == "dynamic" and plan.generate.compile_mode is not None:  # `compile` says dynamic=True
            script.imports.add("import torch.fx.experimental._config")
            script.prepare += [
                "# sizes that are equal by chance stay symbols of their own",
                "torch.fx.experimental._config.use_duck_shape = False",
            ]
        elif kind in ("padded", "buckets"):
            script.define("predict/lengths.py", "rounded")
            script.inputs += [
                'length = inputs["input_ids"].shape[1]',
                f"padding = rounded({quoted(kind)}, length) - length",
                "# decoders are padded on the left, encoders on the right; the mask is 0 there",
                "where = (padding, 0) if model.can_generate() else (0, padding)",
                "for name, tensor in inputs.items():",
                "    inputs[name] = torch.nn.functional.pad(tensor, where)",
            ]
            script.cache = script.cache.replace("MAX_LENGTH", f"rounded({quoted(kind)}, MAX_LENGTH)")
