"""What the words of the page mean, in a sentence or two each; the reference is `docs/metrics.md`."""

import re

import msgspec


class Term(msgspec.Struct, frozen=True):
    """A word of the field. `titles`: the headings that it explains, also where a comma and more follows."""

    titles: tuple[str, ...]
    meaning: str


_TERMS = """
Arm: An arm is one way to run the model: a set of choices. A is what you compare with, B is what you try.
Time to first token, First token: TTFT: the time from the start of a run until its first token, in which the whole
  prompt is read (prefill). With many requests it counts from the arrival of each one, waiting included.
Time per token, Time a token, Time per output token: The time of one decoding step: from one token of a text to its
  next one. The first token, which takes the prefill, is not in it.
Decode speed: Tokens a second of one text after its first token. With one sequence a GPU reads all weights for each
  token, so its memory sets the pace, not its arithmetic.
% of roofline: The roofline bound is the least time a token could take: its bytes, read at the bandwidth of the
  memory. This is the bound divided by the measured time; 100% cannot be beaten.
Peak memory: The most memory that the run held at one moment: the process's GPU memory, or on a CPU its resident
  memory.
KV cache: Keys and values of all earlier tokens, kept so that attention need not compute them again; transformers
  calls it past_key_values. A layer with a sliding window keeps no more than its window.
Same next token, Agreement: At which share of the places of a given text both arms find the same token most likely.
KL, Largest KL: KL divergence: how far B's probabilities for the next token are from those of A, in nats. At 0 both
  predict exactly the same; up to 0.001 only rounding differs.
Perplexity A, Perplexity B: e to the mean negative log probability of the text's own tokens. Lower is better: 1 would
  be certainty.
Ledger: For each choice what was requested, what was planned and what was in effect, with the proof. A choice that
  silently did nothing shows here.
Status: Verified: all that the choice should have reached was reached. Partial: some of it. No effect and fallback:
  something else ran. Unchecked: the check cannot say.
Useful tokens: Tokens that the requests asked for, a second. Padding and steps for requests that had ended do not
  count.
Goodput: Requests a second that kept every limit that was set: on first token, on each token, on the whole request.
"""
"""Titles with commas between, and the meaning after a colon; a line that goes on is indented."""

TERMS = tuple(
    Term(tuple(titles.split(", ")), meaning.replace("\n ", ""))
    for titles, _, meaning in (term.partition(": ") for term in re.split(r"\n(?! )", _TERMS.strip()))
)
