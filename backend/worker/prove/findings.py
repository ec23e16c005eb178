"""Asks every axis what was in effect."""

from collections.abc import Callable

from backend.evidence import Finding
from backend.optimizations import Observation, all_axes


def find_all(observation: Observation, step: Callable[[float], None] = lambda fraction: None) -> list[Finding]:
    """One finding for each axis; "unknown", with the error, where its probe fails.

    `step` is told the fraction done. Axes about decoding report their default where there is no cache (an encoder).
    """
    found = []
    for i, axis in enumerate(all_axes()):
        step(i / len(all_axes()))
        if axis.decoders_only and observation.cache is None:
            nothing = "nothing was decoded: an encoder keeps no KV cache"
            found.append(Finding(axis.name, axis.default, nothing, outcome="not_applicable"))
            continue
        try:
            found.append(axis.find(observation))
        except Exception as error:
            found.append(Finding(axis.name, "unknown", f"the probe failed: {type(error).__name__}: {error}"[:300]))
    return found
