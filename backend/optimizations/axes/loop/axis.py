"""Which decode loop generates the tokens."""

import msgspec

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.conditions import drafts, kv_cache
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Rule, Subject, blocked, note
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import call, quoted

_OWN = "backend/worker/loop/loop.py"
_MASKED = ("auto", "eager", "sdpa", "sdpa-gqa")
LOOP_NAME, STEP_NAME = "own decode loop", "own decode step"  # ranges in a profile


def _blocked(when: object, reason: str, source: str, **fix: str) -> Rule:
    return blocked(when, reason, source, fix=tuple(fix.items()))  # type: ignore[arg-type]


_RULES = (
    _blocked(
        lambda s: s.facts.kind == "decoder" and not kv_cache(s).fixed,
        "The custom decode loop needs tensors with fixed addresses, and so a static cache: a growing, offloaded "
        "or quantized cache of transformers allocates at every step.",
        f"{_OWN}: Step",
        cache="static",
    ),
    _blocked(
        lambda s: not s.facts.sinks and s.choices["attention"] not in _MASKED,
        "The custom decode loop passes attention a 4D mask over the slots of the cache, which flash kernels and "
        "flex_attention do not accept.",
        "transformers 5.22: masking_utils.flash_attention_mask, flex_attention_mask",
        attention="sdpa",
    ),
    _blocked(
        lambda s: s.facts.sinks and s.choices["attention"] not in _MASKED,
        "The custom decode loop passes attention a 4D mask over the slots of the cache, which flash kernels and "
        "flex_attention do not accept.",
        "transformers 5.22: masking_utils.flash_attention_mask, flex_attention_mask",
        attention="eager",
    ),
    _blocked(
        lambda s: not s.facts.fits_slots,
        "The custom decode loop keeps keys and values of full attention and of sliding windows of one size, and states "
        "beside them. This model keeps something else (an index, states alone), attends in chunks, or asks where in "
        "the cache a token lies, and slots are in no order.",
        "transformers 5.22: cache_utils.py, STATIC_LAYER_TYPE_MAPPING; backend/counter/cache.py: slot_step",
        loop="generate",
    ),
    _blocked(
        drafts,
        "The custom decode loop generates one token per step; it cannot verify several draft tokens or roll back "
        "rejected ones.",
        f"{_OWN}: Step",
        speculation="off",
    ),
    note(
        lambda s: s.facts.kind == "decoder",
        "When sampling, the custom decode loop uses its own random numbers: a seed is reproducible, but gives "
        "another text than generate with that seed. Greedy text is that of generate where rounding does not decide: in "
        "float32 nearly always, in bfloat16 not always.",
        "backend/worker/loop/sampling.py",
    ),
)


class Loop(Optimization):
    """Told by the steps that the custom loop took in the measured run and in a profile of a few extra tokens."""

    name = "loop"
    title = "Decode loop"
    summary = "Which loop generates tokens: transformers' generate, or a custom one with fixed tensor addresses."
    default = "generate"
    order = 44
    decoders_only = True
    costs = {"own": "a static cache"}
    choices = (
        Choice("generate", "generate", "The loop of transformers: each step is prepared in Python."),
        Choice(
            "own",
            "custom",
            "One step on fixed tensor addresses, sampling included; the host reads tokens asynchronously.",
            _RULES,
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        loop = "own" if name == "own" else "generate"
        return msgspec.structs.replace(plan, generate=msgspec.structs.replace(plan.generate, loop=loop))

    def write(self, script: Script, plan: Plan) -> None:
        if plan.generate.loop != "own":
            return
        script.define("worker/loop/cache.py", "StaticSlotCache")
        script.define("worker/loop/loop.py", "DecodeLoop")
        eight_bits = ", eight_bits=True" if plan.generate.cache.quantized else ""
        script.cache = f"StaticSlotCache(model.config, MAX_LENGTH{eight_bits})"
        keywords = {}
        if plan.generate.compile_mode is not None:
            keywords["compile_mode"] = quoted(plan.generate.compile_mode)
        if plan.generate.cuda_graphs == "manual":
            keywords["cuda_graph"] = "True"
        if plan.generate.prefill_chunk:
            keywords["prefill_chunk"] = str(plan.generate.prefill_chunk)
        if plan.generate.prefill_graphs:
            keywords["prefill_graphs"] = "True"
        if plan.generate.prefill_compiled:
            keywords["prefill_compiled"] = "True"
        script.loop = call("DecodeLoop", ["model", "pad", "eos"], keywords)
        script.generate.clear()

    def find(self, observation: Observation) -> Finding:
        """Counts the custom loop's steps in the measured run, against its passes, and in a profile."""
        trace, counts = observation.trace(), observation.counts
        own, passes = counts.passes.own_steps, counts.passes.passes
        traced = trace.ops[STEP_NAME] if trace.ops[LOOP_NAME] else 0
        if not own and not trace.ops[LOOP_NAME]:
            none = f"{passes} passes, and {trace.steps} more in a profile, without a step of the custom decode loop"
            return Finding(self.name, "generate", none, passes, max(1, passes))
        prompts = counts.static.batches or 1  # of many requests, one of each batch
        expected = max(0, passes - prompts) + max(0, trace.steps - 1)  # the prompt's pass is no step
        reached = min(own, max(0, passes - prompts)) + min(traced, max(0, trace.steps - 1))
        began = "a prefill" if prompts == 1 else f"{prompts} prefills"
        proof = (
            f"{began} and {own} steps of the custom decode loop in a run of {passes} passes; {traced} steps in "
            f"{trace.steps} further passes"
        )
        return Finding(self.name, "own", proof, reached, expected)


AXIS = Loop()
