"""InputError, the one exception for what a user can put right, and helpers to word it."""

import difflib
from collections.abc import Iterable

MAX_LISTED = 24  # valid names; beyond that only the nearest are listed
MAX_NEAREST = 6


class InputError(ValueError):
    """Bad input. The text is one or two plain sentences: what is wrong, then what to do about it."""


def unknown(what: str, name: str, valid: Iterable[str]) -> InputError:
    """The InputError for a name that is not in `valid`: suggests the nearest one, and lists all if they are few."""
    names = sorted(valid)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if len(names) > MAX_LISTED:
        nearest = difflib.get_close_matches(name.lower(), names, n=MAX_NEAREST, cutoff=0)
        return InputError(f"Unknown {what} {name!r}.{hint} Of {len(names)}, the nearest: {', '.join(nearest)}.")
    return InputError(f"Unknown {what} {name!r}.{hint} Valid: {', '.join(names)}.")
