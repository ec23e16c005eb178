"""Which pairs of choices ran together: any other pair runs too, and is said to be untried.

`tools/tried_pairs.py` writes the record, `presets/tried.toml`, from runs.
"""

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from tokendyno.backend.evidence import Verdict
from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.paths import PRESETS

FILE = PRESETS / "tried.toml"
SHOWN = 3
"""Pairs that a note names; of the others it gives the number."""

Pair = tuple[str, str]
"""Two choices, each as "axis=choice", in alphabetical order."""


class Tried(msgspec.Struct, forbid_unknown_fields=True):
    """By device: a choice, and those later in the alphabet that ran together with it and were found in effect."""

    cpu: dict[str, list[str]] = {}
    cuda: dict[str, list[str]] = {}

    def pairs(self, device: str) -> set[Pair]:
        """Every pair that ran on that kind of device."""
        found = self.cuda if device == "cuda" else self.cpu
        return {(one, other) for one, others in found.items() for other in others}


@functools.cache
def tried_pairs(device: Literal["cpu", "cuda"]) -> frozenset[Pair]:
    """The recorded pairs of a kind of device."""
    return frozenset(read_toml(FILE, Tried).pairs(device))


def pairs_of(choices: Mapping[str, str]) -> Iterator[Pair]:
    """The pairs among these choices; defaults are no part of a pair, so leave them out."""
    yield from itertools.combinations(sorted(f"{axis}={choice}" for axis, choice in choices.items()), 2)


def untried_note(choices: Mapping[str, str], device: Literal["cpu", "cuda"]) -> Verdict | None:
    """One note for all pairs of an arm that no recorded run had, None if there are none."""
    new = [" with ".join(pair) for pair in pairs_of(choices) if pair not in tried_pairs(device)]
    if not new:
        return None
    where = "a GPU" if device == "cuda" else "a CPU"
    more = f" and {len(new) - SHOWN} more" if len(new) > SHOWN else ""
    reason = f"Not tried together on {where}: {', '.join(new[:SHOWN])}{more}. The ledger tells what was in effect."
    return Verdict("note", "arms", reason, {}, "presets/tried.toml")
