"""Three records of an axis: the rules' verdict before a run, the finding in the worker, the evidence afterwards."""

from typing import Literal

import msgspec

TOKENS = "tokens"
"""Row of the ledger that is no axis: whether the tokens are those that the model chooses."""

Status = Literal["verified", "unchecked", "partial", "no_effect", "fallback", "failed", "off", "not_applicable"]
"""Green: verified. Amber: partial, no_effect, fallback. Red: failed. Of unchecked nothing can be said."""

Outcome = Literal["", "no_effect", "not_applicable", "unchecked"]


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What an axis observed to be in effect in the worker, and the proof in words.

    reached, expected  of the layers, matrices or steps, how many it reached and should have; None: not counted
    outcome            no_effect: it ran, and changed nothing; not_applicable: with this model or run nothing can
                       differ; unchecked: the check cannot say, and `proof` is the reason
    """

    axis: str
    effective: str
    proof: str
    reached: int | None = None
    expected: int | None = None
    outcome: Outcome = ""


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the ledger: what was requested and planned, what was found, and what else speaks against it.

    off        the axis's choice that does nothing, "" if it has none
    fell_back  why a rule replaced the requested choice before the run, "" if none did
    settled    why "auto" stands for this choice here, where that is not its usual one
    doubt      what another measurement says against the finding, such as the memory; "" if nothing does
    """

    requested: str
    planned: str
    finding: Finding
    off: str = ""
    fell_back: str = ""
    doubt: str = ""
    settled: str = ""

    @property
    def status(self) -> Status:
        """The worst that applies: verified means found as planned, everywhere, and with an effect."""
        finding = self.finding
        if finding.outcome in ("not_applicable", "unchecked"):
            return finding.outcome
        if finding.effective != self.planned:
            return "failed"
        if self.doubt or (finding.expected is not None and finding.reached != finding.expected):
            return "partial"
        if finding.outcome == "no_effect":
            return "no_effect"
        if self.fell_back:
            return "fallback"
        return "off" if finding.effective == self.off else "verified"

    @property
    def reason(self) -> str:
        """Why the row is not green, as far as the proof does not say it, and what "auto" was settled by."""
        return " ".join(part for part in (self.settled, self.fell_back, self.doubt) if part)


Level = Literal["ok", "note", "fallback", "blocked"]


class Verdict(msgspec.Struct, frozen=True):
    """What a rule says about one axis before anything runs.

    level    note: runs as requested, with a remark; fallback: runs as `becomes` instead; blocked: is refused
    fix      axis -> choice that resolves it
    becomes  of a note: what "auto" settles for
    source   where the rule was read or measured
    """

    level: Level
    axis: str
    reason: str
    fix: dict[str, str] = {}
    source: str = ""
    becomes: str = ""
