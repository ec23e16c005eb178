"""Three records of an axis: the rules' verdict before a run, the finding in the worker, the evidence afterwards."""

from typing import Literal

import msgspec


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the ledger: what was requested, planned and found, and how it was found.

    reason     why it fell back, "" otherwise
    fell_back  a rule replaced the requested choice before the run
    """

    axis: str
    requested: str
    planned: str
    effective: str
    proof: str
    reason: str = ""
    fell_back: bool = False

    @property
    def status(self) -> Literal["proved", "fallback", "failed"]:
        """proved (green), fallback (amber) or failed (red): found something other than planned."""
        if self.effective != self.planned:
            return "failed"
        return "fallback" if self.fell_back else "proved"


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an axis observed to be in effect in the worker, and the proof in words."""

    axis: str
    effective: str
    proof: str


Level = Literal["ok", "note", "fallback", "blocked"]


class Verdict(msgspec.Struct, frozen=True):
    """What a rule says about one axis before anything runs.

    level    note: runs as requested, with a remark; fallback: runs as `becomes` instead; blocked: is refused
    fix      axis -> choice that resolves it
    source   where the rule was read or measured
    """

    level: Level
    axis: str
    reason: str
    fix: dict[str, str] = {}
    source: str = ""
    becomes: str = ""
