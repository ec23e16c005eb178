"""The one error that means: what you asked for cannot be done as written, and this is what to do."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input. Its text is one or two plain sentences: what is wrong, then what to do."""


def unknown(what: str, name: str, valid: Iterable[str]) -> InputError:
    """An InputError for a name that is not among `valid`, with the nearest valid one."""
    names = sorted(valid)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return InputError(f"Unknown {what} {name!r}.{hint} Valid: {', '.join(names)}.")
