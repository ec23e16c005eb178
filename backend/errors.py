"""InputError, the one exception for what a user can put right, and helpers to word it."""

import difflib
from collections.abc import Iterable

import msgspec

MAX_LISTED = 25  # valid names; beyond that only the nearest are listed
MAX_NEAREST = 3
NEAR = 0.65  # likeness (difflib's ratio) from which a name is suggested: "nonsense" and "bert-base-uncased" have 0.40
LEAST_BEGINNING, LEAST_LETTERS = 3, 5  # of a name that begins like another; that leaves some of another's out
MAX_SHOWN = 64  # characters of what was given that a sentence repeats

UNDECODABLE = (msgspec.MsgspecError, UnicodeError, RecursionError)
"""What msgspec raises for bytes from anywhere: text that is not UTF-8 and endless nesting are errors of their own."""

COPY_AGAIN = "Copy it again from the original checkpoint, or choose another model."
"""What to do about a file of a model that is at fault."""


class InputError(ValueError):
    """Bad input. The text is one or two plain sentences: what is wrong, then what to do about it."""


class RunFailed(RuntimeError):
    """Something broke, or was stopped: what, and what to do about it."""


def shown(value: object) -> str:
    """What was given, as it is repeated in a sentence: whole if it is short, else its beginning and its length."""
    if isinstance(value, int) and abs(value) >= 10**MAX_SHOWN:  # Python refuses to write out very long numbers
        return f"a number of about {round(value.bit_length() * 0.30103):,} digits"
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text):,} characters)"


def unknown(what: str, name: str, valid: Iterable[str], where: str = "") -> InputError:
    """The InputError for a name that is not in `valid`: with the nearest ones, and all of them, or `where` they are
    listed if they are many."""
    names, name = sorted(valid), shown(name)
    near = near_names(name, names)
    if len(names) <= MAX_LISTED:
        hint = f" Did you mean {near[0]!r}?" if near else ""
        return InputError(f"Unknown {what} {name!r}.{hint} Valid: {', '.join(names)}.")
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return InputError(f"There is no {what} {name!r}.{hint}{f' All of them: {where}.' if where else ''}")


def near_names(name: str, valid: Iterable[str]) -> list[str]:
    """Names that a user may have meant, the likeliest first: with the same beginning, with all of the letters in their
    order, or alike letter by letter."""
    typed = name.casefold()
    ranked = []
    for candidate in valid:
        known = candidate.casefold()
        begins = min(len(typed), len(known)) >= LEAST_BEGINNING and (known.startswith(typed) or typed.startswith(known))
        letters = iter(known)
        begins |= len(typed) >= LEAST_LETTERS and all(letter in letters for letter in typed)
        likeness = difflib.SequenceMatcher(None, typed, known).ratio()
        if begins or likeness >= NEAR:
            ranked.append((-likeness - begins, candidate))
    return [candidate for _, candidate in sorted(ranked)[:MAX_NEAREST]]
