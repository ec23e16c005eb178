"""What it says against a choice that parts of the model give something else than the model's own code."""

from backend.optimizations.proof import Held, PartKind

_NAMES: dict[PartKind, str] = {"attention": "attention modules", "mixture": "mixtures", "other": "other modules"}


def odd_parts(held: Held, *kinds: PartKind) -> tuple[int, str]:
    """How many parts of these kinds do, and the words for a proof, which are appended to it."""
    if held.unheld:
        return 0, f"; not held against the model's own code: {held.unheld}"
    found, said = 0, ""
    for kind in kinds:
        odd, parts = held.odd.get(kind, ()), held.parts[kind]
        found += len(odd)
        if odd:
            said += f"; {len(odd)} of {parts} {_NAMES[kind]} give something else than the model's own code: {odd[0]}"
        elif parts:
            said += f"; {parts} {_NAMES[kind]} give what the model's own code gives"
    return found, said
