"""The one figure of a slide: of each chart, what it shows of two arms."""

import msgspec

from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import seconds_text
from tokendyno.backend.views.arm_names import capitalized
from tokendyno.backend.views.card import Card
from tokendyno.backend.views.verdict import SAME_BYTES, bytes_of, less_or_more, memory_noise, step_word


class SlideFigure(msgspec.Struct, frozen=True):
    """A figure inside its sentence: `lead` before it, `tail` behind it."""

    lead: str
    figure: str
    tail: str


def slide_figures(run: Snapshot, card: Card | None) -> dict[str, SlideFigure]:
    """By the key of a chart; of memory and KV cache only where they differ."""
    if card is None:
        name = next(iter(run.arms))
        mean_s = run.summary(name).latency_mean_s
        known = {} if mean_s is None else {"latency": " ".join(seconds_text(mean_s))}
        return {key: SlideFigure("", text, f"a {step_word(run.unit)} in arm {name}") for key, text in known.items()}
    found = {"latency": SlideFigure(card.lead, card.figure, card.tail)}
    a, b = (run.summary(name) for name in run.arms)
    sizes = {
        "memory": ("memory", bytes_of([a.peak_memory_bytes, b.peak_memory_bytes], memory_noise(run))),
        "kv": ("KV cache", bytes_of([a.kv_bytes, b.kv_bytes], SAME_BYTES)),
    }
    for key, (what, pair) in sizes.items():
        change = 0.0 if pair is None or run.equal_arms else pair.change("B")
        if pair is None or not change:
            continue
        smaller, larger = ("B", "A") if change < 0 else ("A", "B")
        share, _, less = less_or_more(pair.change(smaller)).partition(" ")
        lead = capitalized(f"{card.names[smaller]} takes")
        found[key] = SlideFigure(lead, share, f"{less} {what} than {card.names[larger]}")
    return found
