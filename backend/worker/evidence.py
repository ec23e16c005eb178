"""Asks every axis what was really in effect."""

from collections.abc import Callable, Mapping
from typing import Any

from backend.messages import Finding
from backend.optimizations import Seen, axes


def find_all(
    seen: Seen, before: Mapping[str, Any], step: Callable[[float], None] = lambda fraction: None
) -> list[Finding]:
    """One finding an axis. A probe that fails is a finding too: "unknown", with what went wrong.

    `step` is told the share that is done. Where there is no cache (an encoder) nothing was decoded, so what is about
    decoding stood at its default.
    """
    found = []
    for i, axis in enumerate(axes()):
        step(i / len(axes()))
        if axis.decoders_only and seen.cache is None:
            found.append(Finding(axis.name, axis.default, "nothing was decoded: an encoder keeps no KV cache"))
            continue
        seen.before = before.get(axis.name)
        try:
            found.append(axis.find(seen))
        except Exception as error:
            found.append(Finding(axis.name, "unknown", f"the probe failed: {type(error).__name__}: {error}"[:300]))
    return found
