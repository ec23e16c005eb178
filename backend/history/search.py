"""What a visitor looks for in the history, as an address or a command line says it: nothing of it is trusted."""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from tokendyno.backend.errors import InputError, shown, unknown
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.runs.row import MARK, searched

MAX_TEXT = 200
"""Characters of a field."""

MAX_PAGE = 1_000_000
PER_PAGE = 50

_AGO = re.compile(r"(\d{1,4})([hdwm])")
_UNITS_S = {"h": 3_600.0, "d": 86_400.0, "w": 7 * 86_400.0, "m": 30 * 86_400.0}
_DATES = "a date such as 2026-11-30, or an age such as 24h, 7d, 4w or 6m"


@dataclass(frozen=True, slots=True)
class Search:
    """What runs must have in common, and which page of them is wanted.

    words        each is somewhere in the row: model, machine, choices, prompt, verdict, name, note or id
    choice       axis, or axis=choice
    since_s      seconds since the epoch; until_s: likewise, not included
    page         from 0; of `per_page` rows
    """

    words: tuple[str, ...] = ()
    model: str = ""
    choice: str = ""
    machine: str = ""
    since_s: float | None = None
    until_s: float | None = None
    page: int = 0
    per_page: int = PER_PAGE

    def where(self) -> tuple[str, dict[str, object]]:
        """The condition on a row of `runs`, and its values."""
        parts, values = list[str](), dict[str, object]()
        for n, word in enumerate(self.words):
            parts.append(f"(instr(words, :word{n}) OR instr(said, :word{n}))")
            values[f"word{n}"] = word
        for column, text in (("model", self.model), ("machine", self.machine)):
            if text:
                also = f" OR instr(lower(label), :{column})" if column == "model" else ""
                parts.append(f"(instr(lower({column}), :{column}){also})")
                values[column] = text.lower()
        if self.choice:
            parts.append("instr(choices, :choice)")
            values["choice"] = f"{MARK}{self.choice}{MARK}"
        for name, sign in (("since_s", ">="), ("until_s", "<")):
            if (bound := getattr(self, name)) is not None:
                parts.append(f"created {sign} :{name}")
                values[name] = bound
        return " AND ".join(parts), values


def read_search(
    fields: Mapping[str, str], page: int = 0, per_page: int = PER_PAGE, zone_s: float | None = None
) -> Search:
    """A search as it was typed: q, model, axis, machine, since, until. InputError says what cannot be looked for."""
    for name, text in fields.items():
        if len(text) > MAX_TEXT:
            raise InputError(f"{name} has {len(text):,} characters; a search takes {MAX_TEXT}. Shorten it.")
    if not 0 <= page <= MAX_PAGE:
        raise InputError(f"There is no page {shown(page + 1)}. Go back to the first one.")
    since, until = (_moment(name, fields.get(name, "").strip(), zone_s) for name in ("since", "until"))
    if since is not None and until is not None and since[0] >= until[1]:
        raise InputError("Nothing lies between these dates: `since` is after `until`. Swap them.")
    return Search(
        tuple(searched(fields.get("q", "")).split()[:12]),
        fields.get("model", "").strip(),
        _choice(fields.get("axis", "").strip()),
        fields.get("machine", "").strip(),
        since[0] if since else None,
        until[1] if until else None,
        page,
        per_page,
    )


def _choice(text: str) -> str:
    """An axis, or axis=choice, with both names known."""
    if not text:
        return ""
    name, sign, choice = (part.strip() for part in text.partition("="))
    axes = {axis.name: axis for axis in all_axes()}
    if name not in axes:
        raise unknown("axis", name, axes, "docs/axes.md")
    if not sign:
        return name
    choices = [choice.name for choice in axes[name].choices]
    if choice not in choices:
        raise unknown(f"choice of {name}", choice, choices)
    return f"{name}={choice}"


def _moment(name: str, text: str, zone_s: float | None) -> tuple[float, float] | None:
    """The first second that a text names, and the first one after it; None for an empty text."""
    if not text:
        return None
    if age := _AGO.fullmatch(text):
        at_s = time.time() - int(age[1]) * _UNITS_S[age[2]]
        return at_s, at_s
    zone = None if zone_s is None else timezone(timedelta(seconds=zone_s))
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=zone)
        return day.timestamp(), (day + timedelta(days=1)).timestamp()
    except (ValueError, OverflowError, OSError):
        raise InputError(f"{name} is {shown(text)!r}. Write {_DATES}.") from None


def read_zone(minutes: object) -> float:
    """The time zone of a browser in seconds ahead of UTC. InputError for what is none."""
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not abs(minutes) <= 24 * 60 - 1:  # or NaN
        raise InputError("The browser's time zone cannot be read. Reload the page.")
    return 60.0 * minutes
