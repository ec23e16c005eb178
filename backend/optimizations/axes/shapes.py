"""Which sequence lengths the model sees: exact, padded, or symbolic."""

from typing import Any

import msgspec

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.conditions import compiles, needs_compile, skips_compilation, uses_own_loop
from tokendyno.backend.optimizations.proof import Observation, symbolic_graphs
from tokendyno.backend.optimizations.subject import Subject, blocked, note
from tokendyno.backend.plan import GRAPH_MODES, Plan, ShapesKind
from tokendyno.backend.predict.lengths import LAST_DOUBLED, PADDED, rounded
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import quoted

_GUIDE = "https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html"
_KINDS: dict[str, ShapesKind] = {"exact": "exact", "padded": "padded", "buckets": "buckets", "dynamic": "dynamic"}

_NO_FLEX = blocked(
    lambda s: s.machine.device == "cpu" and s.choices["attention"] == "flex_attention",
    "On a CPU torch cannot compile flex_attention for a padded prompt: the generated C++ does not build.",
    "measured with torch 2.13: CppCompileError",
    fix=(("attention", "auto"),),
)
_ONLY_WASTE = note(
    lambda s: not compiles(s),
    "Nothing is compiled, so padding saves no recompilation and only costs time.",
    _GUIDE,
)
_PADDING = (_NO_FLEX, _ONLY_WASTE)


_DYNAMIC = (
    *needs_compile("Symbolic shapes are an option of compilation, and nothing is compiled.", _GUIDE),
    blocked(
        skips_compilation,
        "generate does not compile a model quantized like this, so there are no symbolic shapes.",
        "backend/optimizations/axes/compile.py: skipped",
        fix=(("shapes", "exact"),),
    ),
    blocked(
        lambda s: uses_own_loop(s),
        "The custom decode loop has fixed shapes and compiles its step for exactly these.",
        "backend/worker/loop/loop.py",
        fix=(("loop", "generate"),),
    ),
    note(
        lambda s: s.machine.device == "cuda" and s.choices["compile"] in GRAPH_MODES,
        "CUDA graphs have fixed shapes: with symbolic ones a new graph is captured for each length.",
        "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html",
    ),
)


class Shapes(Optimization):
    """Told by the positions that the model has seen, by the slots of its cache, and by the guards of its graphs."""

    name = "shapes"
    title = "Shapes"
    summary = "Lengths of prompt and static cache: fewer distinct lengths mean fewer recompilations and more padding."
    default = "exact"
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
        Choice("exact", "exact", "No padding: a compiled step is recompiled for each new length."),
        Choice(
            "padded",
            "padded",
            f"Prompt and cache padded to a multiple of {PADDED}: one length for nearly all prompts.",
            _PADDING,
        ),
        Choice(
            "buckets",
            "buckets",
            f"Prompt and cache padded to 64, 128, ... {LAST_DOUBLED}, then to multiples of {LAST_DOUBLED}.",
            _PADDING,
        ),
        Choice("dynamic", "dynamic", "Compiled once with symbolic shapes: one graph for all lengths.", _DYNAMIC),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return msgspec.structs.replace(plan, generate=msgspec.structs.replace(plan.generate, shapes=_KINDS[name]))

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

    def find(self, observation: Observation) -> Finding:
        """Where several choices give the same lengths (a prompt as long as a bucket), the planned one is reported."""
        positions, padding = observation.counts.prompt.positions, observation.counts.prompt.padding
        slots = _static_slots(observation.cache)
        proof = f"the model has seen {positions - padding:,} tokens and {padding:,} padding tokens of the prompt"
        if slots:
            proof += f", and a static cache of {slots:,} slots"
        same = [kind for kind in ("exact", "padded", "buckets") if _fits(observation, kind, positions, padding, slots)]
        compiled = observation.counts.graphs.compiled_matrices
        symbolic, graphs = symbolic_graphs(observation.trace()) if compiled else ([], 0)
        if symbolic:
            proof += f"; compiled with symbolic shapes: graph {', '.join(symbolic)}"
        planned = observation.plan.generate.shapes
        if planned == "dynamic" and symbolic and not padding:
            return Finding(self.name, "dynamic", proof, len(symbolic), graphs)
        if len(same) > 1 and planned in same:
            proof += f" ({', '.join(same[:-1])} and {same[-1]} are the same here)"
        return Finding(self.name, planned if planned in same else next(iter(same), "unknown"), proof)


def _fits(observation: Observation, kind: Any, positions: int, padding: int, slots: int) -> bool:
    """Whether that choice gives these lengths."""
    expected = rounded(kind, positions - padding) if positions else 0
    if observation.cache is None:  # an encoder: limited by its positions
        expected = min(expected, int(getattr(observation.model.config, "max_position_embeddings", expected)))
    return positions == expected and (not slots or rounded(kind, slots) == slots)


def _static_slots(cache: Any) -> int:
    """Slots of a static cache's full-attention layers, 0 where there are none: windows are not rounded."""
    layers = cache.layers if cache is not None else []
    static = [layer for layer in layers if type(layer).__name__.startswith("Static") and layer.keys is not None]
    full = [layer for layer in static if "Sliding" not in type(layer).__name__ and "Ring" not in type(layer).__name__]
    return max((int(layer.keys.shape[2]) for layer in full), default=0)


AXIS = Shapes()
