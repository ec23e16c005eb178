"""Which lengths the model meets: as they come, rounded up, or as symbols."""

from typing import Any

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.optimizations.compile import compiles, skipped
from backend.optimizations.lengths import LAST_DOUBLED, PADDED, rounded
from backend.plan import Plan, ShapesKind
from backend.script import Script

_GUIDE = "https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html"
_KINDS: dict[str, ShapesKind] = {"exact": "exact", "padded": "padded", "buckets": "buckets", "dynamic": "dynamic"}

_NO_FLEX = Rule(
    "blocked",
    lambda s: s.machine.device == "cpu" and s.choices.get("attention", "auto") == "flex_attention",
    "On a CPU torch cannot compile flex_attention for a prompt with padding: its C++ does not build.",
    "measured with torch 2.13: CppCompileError",
    fix=(("attention", "auto"),),
)
_ONLY_WASTE = Rule(
    "note",
    lambda s: not compiles(s),
    "Nothing is compiled here, so rounded lengths save no recompilation: the padding only costs.",
    _GUIDE,
)
_PADDING = (_NO_FLEX, _ONLY_WASTE)


def _needs_compile(kind: str, *fix: tuple[str, str]) -> Rule:
    return Rule(
        "blocked",
        lambda s: s.facts.kind == kind and not compiles(s) and not skipped(s),
        "Symbolic sizes are a way to compile, and nothing is compiled here.",
        _GUIDE,
        fix=fix,
    )


_DYNAMIC = (
    _needs_compile("decoder", ("compile", "default"), ("cache", "static")),
    _needs_compile("encoder", ("compile", "default")),
    Rule(
        "blocked",
        skipped,
        "generate does not compile a model that is quantized in this way, so no size can be a symbol.",
        "backend/optimizations/compile.py: skipped",
        fix=(("shapes", "exact"),),
    ),
    Rule(
        "blocked",
        lambda s: s.choices.get("loop", "generate") == "own",
        "The own loop works on tensors whose sizes never change, and compiles its step for just these.",
        "backend/worker/own.py",
        fix=(("loop", "generate"),),
    ),
    Rule(
        "note",
        lambda s: s.machine.device == "cuda" and s.choices.get("compile", "off") in ("reduce-overhead", "max-autotune"),
        "CUDA graphs have fixed sizes: with symbolic ones another graph is recorded for each length.",
        "https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html",
    ),
)


class Shapes(Optimization):
    """Told apart by the padding and the cache's length that the model was given, and by the graphs that it ran."""

    name = "shapes"
    title = "Shapes"
    summary = "Lengths of prompt and static cache: fewer of them mean fewer recompilations, and more padding."
    default = "exact"
    order = 46
    choices = (
        Choice("exact", "exact", "As they come. A compiled step is compiled again for another length."),
        Choice(
            "padded", "padded", f"Prompts and cache to {PADDED} or a multiple: one length for nearly all.", _PADDING
        ),
        Choice(
            "buckets",
            "buckets",
            f"Prompts and cache to the next of 64, 128, ... {LAST_DOUBLED}, then multiples of that.",
            _PADDING,
        ),
        Choice("dynamic", "dynamic", "Compiled once with sizes as symbols: any length runs the same graph.", _DYNAMIC),
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
            script.functions.append(_ROUNDED[kind])
            script.inputs += [
                'padding = rounded(inputs["input_ids"].shape[1]) - inputs["input_ids"].shape[1]',
                "# where the mask is 0: on the left of a text that goes on, on the right of any other",
                "where = (padding, 0) if model.can_generate() else (0, padding)",
                "for name, tensor in inputs.items():",
                "    inputs[name] = torch.nn.functional.pad(tensor, where)",
            ]
            script.cache = script.cache.replace("MAX_LENGTH", "rounded(MAX_LENGTH)")

    def find(self, seen: Seen) -> Finding:
        """Where several choices come to the same (a prompt that is as long as a bucket), the planned one counts."""
        positions, padding = (int(seen.counts.get(name, 0)) for name in ("positions", "padding"))
        places = _static_places(seen.cache)
        proof = f"the model was given {positions - padding:,} tokens and {padding:,} of padding"
        if places:
            proof += f", and a static cache of {places:,} places"
        same = [kind for kind in ("exact", "padded", "buckets") if _fits(seen, kind, positions, padding, places)]
        symbolic = _symbolic_graphs(seen)
        if symbolic:
            proof += f"; compiled with symbolic sizes: graph {', '.join(symbolic)}"
        planned = seen.plan.generate.shapes
        if planned == "dynamic" and symbolic and not padding:
            return Finding(self.name, "dynamic", proof)
        if len(same) > 1 and planned in same:
            proof += f" ({', '.join(same[:-1])} and {same[-1]} are the same here)"
        return Finding(self.name, planned if planned in same else next(iter(same), "unknown"), proof)


def _fits(seen: Seen, kind: Any, positions: int, padding: int, places: int) -> bool:
    """Whether these lengths are what that choice makes of them."""
    expected = rounded(kind, positions - padding) if positions else 0
    if seen.cache is None:  # an encoder: no further than its positions
        expected = min(expected, int(getattr(seen.model.config, "max_position_embeddings", expected)))
    return positions == expected and (not places or rounded(kind, places) == places)


def _static_places(cache: Any) -> int:
    """Length of a static cache's layers with full attention, 0 where there are none: windows are not rounded."""
    layers = cache.layers if cache is not None else []
    static = [layer for layer in layers if type(layer).__name__.startswith("Static") and layer.keys is not None]
    full = [layer for layer in static if "Sliding" not in type(layer).__name__ and "Ring" not in type(layer).__name__]
    return max((int(layer.keys.shape[2]) for layer in full), default=0)


def _symbolic_graphs(seen: Seen) -> list[str]:
    """Compiled graphs that ran in the profile of a few more tokens and hold for more than one size: their guards
    speak of symbols. Dynamo makes them of itself, too, once a size has changed."""
    if getattr(seen.model, "_compiled_call", None) is None:
        return []
    from torch._dynamo.utils import get_compilation_metrics

    ran = {name.rpartition(" ")[2] for name in seen.trace().matching("Torch-Compiled Region")}
    return sorted(m.compile_id for m in get_compilation_metrics() if m.compile_id in ran and m.shape_env_guard_count)


_ROUNDED = {
    "padded": f'''def rounded(length):
    """To a multiple of {PADDED}."""
    return -(-length // {PADDED}) * {PADDED}''',
    "buckets": f'''def rounded(length):
    """To 64, 128, 256, 512, {LAST_DOUBLED}, and from there to a multiple of {LAST_DOUBLED}."""
    if length > {LAST_DOUBLED}:
        return -(-length // {LAST_DOUBLED}) * {LAST_DOUBLED}
    return max(64, 1 << (length - 1).bit_length())''',
}

AXIS = Shapes()
