"""Whose decode loop makes the tokens."""

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.optimizations.loop_script import CAPTURE, LOOP
from backend.plan import Plan
from backend.script import Script

_OWN = "backend/worker/own.py"
_MASKED = ("auto", "eager", "sdpa", "sdpa-gqa")
LOOP_NAME, STEP_NAME = "own decode loop", "own decode step"  # in a profile


def _blocked(when: object, reason: str, source: str, **fix: str) -> Rule:
    return Rule("blocked", when, reason, source, fix=tuple(fix.items()))  # type: ignore[arg-type]


_RULES = (
    _blocked(
        lambda s: s.facts.kind == "decoder" and s.choices["cache"] != "static",
        "The own loop works on tensors that never move, and so on the static cache alone: a growing, offloaded or "
        "quantized one allocates at every step.",
        f"{_OWN}: Step",
        cache="static",
    ),
    _blocked(
        lambda s: not s.facts.sinks and s.choices.get("attention", "auto") not in _MASKED,
        "The own loop gives attention a 4D mask over the places of the cache; flash kernels and flex_attention take "
        "none.",
        "transformers 5.22: masking_utils.flash_attention_mask, flex_attention_mask",
        attention="sdpa",
    ),
    _blocked(
        lambda s: s.facts.sinks and s.choices.get("attention", "auto") not in _MASKED,
        "The own loop gives attention a 4D mask over the places of the cache; flash kernels and flex_attention take "
        "none.",
        "transformers 5.22: masking_utils.flash_attention_mask, flex_attention_mask",
        attention="eager",
    ),
    _blocked(
        lambda s: s.choices.get("speculation", "off") != "off",
        "Guessed tokens come several at a time and are taken back when they were wrong: the own loop makes one a step.",
        f"{_OWN}: Step",
        speculation="off",
    ),
    Rule(
        "note",
        lambda s: s.facts.kind == "decoder",
        "With a temperature, the own loop draws from random numbers of its own: one seed gives one text, but not the "
        "text that generate samples with that seed. Greedy text is the same.",
        "backend/worker/sampling.py",
    ),
)


class Loop(Optimization):
    """generate or ours, told apart by the steps that a profile of a few tokens shows."""

    name = "loop"
    title = "Decode loop"
    summary = "Who makes the tokens: transformers' generate, or a loop of our own on tensors that never move."
    default = "generate"
    order = 44
    decoders_only = True
    choices = (
        Choice("generate", "generate", "The loop of transformers: one call of the model a token, prepared in Python."),
        Choice(
            "own",
            "own",
            "One step on tensors that never move, sampling included; the host reads tokens behind the computation.",
            _RULES,
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        loop = "own" if name == "own" else "generate"
        return msgspec.structs.replace(plan, generate=msgspec.structs.replace(plan.generate, loop=loop))

    def write(self, script: Script, plan: Plan) -> None:
        if plan.generate.loop != "own":
            return
        manual = plan.generate.cuda_graphs == "manual"
        step = "self._step"
        if plan.generate.compile_mode is not None:
            step = f"torch.compile(self._step, mode={plan.generate.compile_mode!r}, dynamic=False)"
        make = f"            if self.advance is None:\n                self.advance = {step}\n"
        if manual:
            make += "                self._prefill(ids, mask)\n"
            make += "                self.advance = self._captured(self.advance)\n"
        script.imports |= {"import functools", "from transformers import StaticCache"}
        script.functions.append(LOOP.replace("CAPTURE", CAPTURE if manual else "").replace("MAKE", make))
        script.cache = "OwnLoop(model, MAX_LENGTH)"
        script.decode = "cache.decode(inputs, MAX_NEW_TOKENS, clock)"
        script.generate.clear()

    def find(self, seen: Seen) -> Finding:
        """Counts the steps of the own loop in a profile of a few more tokens: `generate` takes none."""
        trace = seen.trace()
        runs, steps = trace.ops[LOOP_NAME], trace.ops[STEP_NAME]
        name = "own" if runs and steps == trace.steps - 1 else "generate"
        proof = (
            f"{trace.steps} more tokens were a prompt and {steps} steps of the own loop"
            if runs
            else (f"{trace.steps} more tokens took no step of the own loop")
        )
        return Finding(self.name, name, proof)


AXIS = Loop()
