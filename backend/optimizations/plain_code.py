"""What it says against a choice that parts of the model give something else than its own code, or did so in the run."""

from backend.optimizations.proof import Held, PartKind

_NAMES: dict[PartKind, str] = {"attention": "attention modules", "mixture": "mixtures", "other": "other modules"}


def odd_parts(held: Held, *kinds: PartKind) -> tuple[int, str]:
    """How many parts of these kinds do, or were exchanged after the measured run, and the words for a proof, which are
    appended to it."""
    found, said = 0, f"; not held against the model's own code: {held.unheld}" if held.unheld else ""
    for kind in kinds:
        odd, swapped, parts = held.odd.get(kind, ()), held.swapped.get(kind, ()), held.parts[kind]
        found += len({*odd, *swapped})
        if odd:
            said += f"; {len(odd)} of {parts} {_NAMES[kind]} give something else than the model's own code: {odd[0]}"
        elif parts and not held.unheld:
            said += f"; {parts} {_NAMES[kind]} give what the model's own code gives"
        if swapped:
            said += f"; {len(swapped)} were something else in the measured run: {swapped[0]}"
    return found, said


def of_files(held: Held) -> str:
    """The words for tensors that were held against the files that they were loaded from."""
    if not held.tensors:
        return ""
    if held.other:
        return f"; {len(held.other)} of {held.tensors} tensors hold other numbers than their files: {held.other[0]}"
    return f"; {held.tensors} tensors hold the numbers of their files"
