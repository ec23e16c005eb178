"""The one error that means: what you asked for cannot be done as written, and this is what to do."""

import difflib
from collections.abc import Iterable

MOST_LISTED = 24
MOST_NEAR = 6


class InputError(ValueError):
    """Bad input. Its text is one or two plain sentences: what is wrong, then what to do."""


def unknown(what: str, name: str, valid: Iterable[str]) -> InputError:
    """An InputError for a name that is not among `valid`: the nearest of those, and all if they are few."""
    names = sorted(valid)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if len(names) > MOST_LISTED:
        nearest = difflib.get_close_matches(name.lower(), names, n=MOST_NEAR, cutoff=0)
        return InputError(f"Unknown {what} {name!r}.{hint} Of {len(names)}, the nearest: {', '.join(nearest)}.")
    return InputError(f"Unknown {what} {name!r}.{hint} Valid: {', '.join(names)}.")
