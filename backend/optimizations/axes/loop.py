"""Which decode loop generates the tokens."""

from typing import Any

from tokendyno.backend.optimizations.base import Choice, Optimization, blocked, note
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import call, quoted

_OWN = "backend/worker/loop/loop.py"
LOOP_NAME, STEP_NAME = "own decode loop", "own decode step"  # ranges in a profile


def slot_masks(config: Any, full: Any, sliding: Any) -> Any:
    """What attention may look at in layers with full attention and in those with a sliding window: one mask, or a dict
    by kind of layer where the model takes several. config: of the text model."""
    if not hasattr(config, "layer_types"):
        return full if sliding is None else sliding
    masks = {"full_attention": full, "hybrid": full, "sliding_attention": sliding, "hybrid_sliding": sliding}
    return masks | dict.fromkeys(("linear_attention", "conv"))  # a new token is never padding


_RULES = (
    blocked(
        lambda s: s.decoder and not s.cache.fixed and not s.batches_continuously,  # which has a loop of its own
        "The custom decode loop needs tensors with fixed addresses, and so a static cache: a growing, offloaded "
        "or quantized cache of transformers allocates at every step.",
        f"{_OWN}: Step",
        (("cache", "static"),),
    ),
    blocked(
        lambda s: s.choices["attention"] not in ("auto", "eager", "sdpa", "sdpa-gqa"),
        "The custom decode loop passes attention a 4D mask over the slots of the cache, which flash kernels and "
        "flex_attention do not accept.",
        "transformers 5.22: masking_utils.flash_attention_mask, flex_attention_mask",
        (("attention", "auto"),),
    ),
    blocked(
        lambda s: not s.facts.fits_slots,
        "The custom decode loop keeps keys and values of full attention and of sliding windows of one size, and states "
        "beside them. This model keeps something else (an index, states alone), attends in chunks, or asks where in "
        "the cache a token lies, and slots are in no order.",
        "transformers 5.22: cache_utils.py, STATIC_LAYER_TYPE_MAPPING; backend/counter/cache.py: slot_step",
    ),
    blocked(
        lambda s: s.drafts,
        "The custom decode loop generates one token per step; it cannot verify several draft tokens or roll back "
        "rejected ones.",
        f"{_OWN}: Step",
        (("speculation", "off"),),
    ),
    note(
        lambda s: s.decoder,
        "When sampling, the custom decode loop uses its own random numbers: a seed is reproducible, but gives "
        "another text than generate with that seed. Greedy text is that of generate where rounding does not decide: in "
        "float32 nearly always, in bfloat16 not always.",
        "backend/worker/loop/sampling.py",
    ),
)


class Loop(Optimization):
    name = "loop"
    title = "Decode loop"
    summary = "Which loop generates tokens: transformers' generate, or a custom one with fixed tensor addresses."
    default = "generate"
    sets = "generate.loop"
    order = 44
    decoders_only = True
    costs = {"own": "a static cache"}
    choices = (
        Choice("generate", "The loop of transformers: each step is prepared in Python."),
        Choice(
            "own",
            "One step on fixed tensor addresses, sampling included; the host reads tokens asynchronously.",
            _RULES,
            title="custom",
        ),
    )

    def write(self, script: Script, plan: Plan) -> None:
        if plan.generate.loop != "own":
            return
        script.define("worker/loop/cache.py", "StaticSlotCache")
        script.define("worker/loop/loop.py", "DecodeLoop")
        eight_bits = ", eight_bits=True" if plan.generate.cache.quantized else ""
        script.cache = f"StaticSlotCache(model.config, MAX_LENGTH{eight_bits})"
        generate = plan.generate
        keywords = {
            "compile_mode": quoted(generate.compile_mode) if generate.compile_mode is not None else "",
            "cuda_graph": "True" if generate.cuda_graphs == "manual" else "",
            "prefill_chunk": str(generate.prefill_chunk or ""),
            "prefill_graphs": "True" if generate.prefill_graphs else "",
            "prefill_compiled": "True" if generate.prefill_compiled else "",
        }
        given = {name: value for name, value in keywords.items() if value}
        script.loop = call("DecodeLoop", ["model", "pad", "eos"], given)
        script.generate.clear()
