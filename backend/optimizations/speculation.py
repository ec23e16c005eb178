"""Whether tokens are guessed ahead and checked together."""

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.plan import Plan
from backend.script import Script

LOOKUP_TOKENS = 5
"""Tokens guessed at a time: what https://huggingface.co/docs/transformers/assisted_decoding#prompt-lookup-decoding
shows. More guesses cost more where they are wrong."""

_DOCS = "https://huggingface.co/docs/transformers/assisted_decoding"
_CODE = "transformers 5.22: generation/utils.py, _assisted_decoding"

_RULES = (
    Rule(
        "blocked",
        lambda s: "static" in s.choices["cache"],
        "Wrong guesses are cut off the cache again, which a static cache cannot: transformers refuses it.",
        _CODE,
        fix=(("cache", "dynamic"),),
    ),
    Rule(
        "blocked",
        lambda s: s.choices["cache"].startswith("quantized"),
        "Wrong guesses are cut off the cache again, which a quantized cache cannot: it fails at the first one.",
        "transformers 5.22: cache_utils.py, DynamicLayer.crop on the layers of QuantizedCache",
        fix=(("cache", "dynamic"),),
    ),
    Rule(
        "blocked",
        lambda s: s.batch_size > 1,
        "Sequences of a batch would be right about different numbers of guesses: transformers takes a batch of 1 only.",
        _CODE,
        fix=(("speculation", "off"),),
    ),
    Rule(
        "note",
        lambda s: s.facts.kind == "decoder",
        "Guesses are looked up in the prompt and in what was written: it pays where the text repeats itself. Greedy "
        "text stays the same; text sampled with a temperature is another for the same seed.",
        _DOCS,
    ),
)


class Speculation(Optimization):
    """Told apart by the look-ups that were counted, and by tokens against forward passes."""

    name = "speculation"
    title = "Speculation"
    summary = "Guess several tokens ahead and check them in one forward pass."
    default = "off"
    order = 50
    decoders_only = True
    choices = (
        Choice("off", "off", "One forward pass a token."),
        Choice(
            "prompt-lookup",
            "prompt lookup",
            f"Where the last words stood before, the {LOOKUP_TOKENS} tokens that followed are the guess.",
            _RULES,
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        tokens = LOOKUP_TOKENS if name == "prompt-lookup" else 0
        return msgspec.structs.replace(plan, generate=msgspec.structs.replace(plan.generate, prompt_lookup=tokens))

    def write(self, script: Script, plan: Plan) -> None:
        if plan.generate.prompt_lookup:
            script.generate["prompt_lookup_num_tokens"] = str(plan.generate.prompt_lookup)

    def find(self, seen: Seen) -> Finding:
        lookups = seen.counts.get("lookups", 0)
        if not lookups:
            return Finding(self.name, "off", "nothing was looked up while tokens were made")
        accepted, steps = (int(seen.counts.get(name, 0)) for name in ("accepted", "steps"))
        proof = (
            f"{steps + accepted} tokens in {steps} steps: {lookups:.0f} look-ups guessed "
            f"{seen.counts.get('guessed', 0):.0f} tokens, {accepted} were right"
        )
        return Finding(self.name, "prompt-lookup", proof)


AXIS = Speculation()
