"""What users and programs see of claims: the claimed range against the measured interval, and the verdict in words."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from tokendyno.backend.claims.curves import CurveView, curve_view
from tokendyno.backend.claims.declared import DOCUMENTS, Claim, Claims, ClaimTest, Device, Figure, Unit, shipped_claims
from tokendyno.backend.claims.formula import Bounds, Side, State, Word, bounds, side, state, verdict
from tokendyno.backend.claims.results import Result, read_results
from tokendyno.backend.units import three

LEAST_NATS = 1e-6
SCALES: dict[Unit, float] = {"%": 100.0, "GB": 1e-9}
"""Factors to the units of the text; the others are shown as they are."""

WORDS: tuple[Word, ...] = (
    "confirmed",
    "exceeded",
    "partly confirmed",
    "not decided",
    "not confirmed",
    "not tested here",
)

SIDES: dict[Side, str] = {"": "within", "below": "below", "above": "above", "both": "below and above"}
DOUBTED = "a choice was in effect only in part"

_ORDER: tuple[State, ...] = ("within", "exceeds", "outside", "overlaps", "missing")


class Standing(NamedTuple):
    """Where a figure stands.

    side  on which side of the claimed range it lies, or its interval leaves the range; "" if neither
    once  it comes from one run, so that it has no interval
    """

    state: State
    side: Side = ""
    once: bool = False


def standing_text(standing: Standing) -> str:
    """Where one figure stands, beside the range that was claimed; "" where none was."""
    match standing.state:
        case "shown":
            return ""
        case "missing":
            return "not measured"
        case "overlaps" if not standing.once:
            return f"with an interval that reaches {SIDES[standing.side]} the claimed range"
        case _:
            better = ", which is better" * (standing.state == "exceeds")
            return f"{SIDES[standing.side]} the claimed range{better}{', in one run only' * standing.once}"


def remark(standings: Sequence[Standing], word: Word, partly: bool = False) -> str:
    """What a verdict rests on: how many of its figures stand where, those that hold first; "" where that is plain.
    `partly`: some choice was in effect only in part."""
    decided = [standing for standing in standings if standing.state != "shown"]
    decided.sort(key=lambda standing: _ORDER.index(standing.state))
    if word == "not tested here" or (word == "confirmed" and len(decided) == 1):
        return ""
    counts = Counter(map(standing_text, decided))
    texts = "; ".join(f"{count} {text}" if len(decided) > 1 else text for text, count in counts.items())
    counted = f"of {len(decided)} figures {texts}" if len(decided) > 1 else texts
    return f"{counted}; {DOUBTED}" if partly else counted


class FigureView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure on one machine, in the unit of the text: 30 for 30%, GB, seconds; null is open, unknown or never."""

    title: str
    unit: Unit
    claimed: str
    claimed_low: float | None
    claimed_high: float | None
    measured: str
    value: float | None
    low: float | None
    high: float | None
    state: State
    standing: str
    command: str


class OnMachine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one machine says of a claim. `doubts`: choices that were in effect only in part, or not at all."""

    machine: str
    device: Literal["cuda", "cpu"]
    date: str
    versions: str
    word: Word
    remark: str
    sentence: str
    figures: list[FigureView]
    doubts: list[str]


class ClaimView(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One claim. `measured`, `word` and `sentence` are those of the machine that counts."""

    name: str
    title: str
    family: str
    family_title: str
    document: str
    place: str
    said: str
    about: Literal["gpu", "any"]
    differs: str
    claimed: str
    measured: str
    word: Word
    remark: str
    sentence: str
    machines: list[OnMachine]
    commands: dict[str, list[str]]
    curves: list[CurveView]


class ClaimsDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All claims that were asked for."""

    kind: Literal["claims"]
    schema: Literal[3]
    counts: dict[Word, int]
    claims: list[ClaimView]


def claims_document(
    claims: Claims, results: Mapping[str, Sequence[Result]], wanted: Sequence[Claim] | None = None
) -> ClaimsDocument:
    """Every claim, or the wanted ones, with what was measured."""
    views = [claim_view(claims, claim, results) for claim in (claims.claims if wanted is None else wanted)]
    return ClaimsDocument("claims", 3, {word: sum(view.word == word for view in views) for word in WORDS}, views)


def measured_of(names: Sequence[str]) -> list[ClaimView]:
    """What was measured of shipped claims. InputError for a name that is none, and for results that cannot be read."""
    claims = shipped_claims()
    results = read_results(claims.tests) if names else {}
    return [claim_view(claims, claim, results) for claim in (claims.named(names) if names else [])]


def claim_view(claims: Claims, claim: Claim, results: Mapping[str, Sequence[Result]]) -> ClaimView:
    """One claim with what was measured of it on every machine."""
    family = claims.family_of(claim)
    devices: tuple[Device, ...] = ("cuda", "cpu")
    tests = {device: claims.tests_of([claim], device) for device in devices}
    machines = _machines(claims, claim, results)
    best = _counting(claim, machines)
    word, sentence = (best.word, f"{best.sentence} ({best.machine})") if best else _untested(claim, machines, tests)
    first = next((figure for figure in claim.figures if figure.decides), None)
    shown = next((figure for figure in best.figures if figure.claimed), None) if best else None
    claimed = shown.claimed if shown else claimed_text(first) if first else ""
    differs = " ".join(filter(None, (claim.differs, family.differs)))
    return ClaimView(
        claim.name,
        claim.title,
        family.name,
        family.title,
        DOCUMENTS[claim.document],
        claim.place,
        claim.said,
        claim.about,
        differs,
        claimed,
        shown.measured if shown else "",
        word,
        best.remark if best else "",
        sentence,
        machines,
        {device: [test.line for test in tests[device]] for device in devices if tests[device]},
        [curve_view(curve) for curve in claim.curves],
    )


def _counting(claim: Claim, machines: Sequence[OnMachine]) -> OnMachine | None:
    """The newest measurement on the kind of machine that counts."""
    counting = [one for one in machines if claim.about == "any" or one.device == "cuda"]
    return max(counting, key=lambda one: (one.word != "not tested here", one.device == "cuda", one.date), default=None)


def _untested(
    claim: Claim, machines: Sequence[OnMachine], tests: Mapping[Device, Sequence[ClaimTest]]
) -> tuple[Word, str]:
    """Why nothing counts."""
    if claim.untested:
        return "not tested here", claim.untested
    if machines:
        return "not tested here", "Only a CPU has measured it, and the claim is about GPUs."
    where = " and ".join(dict.fromkeys(test.where for of_device in tests.values() for test in of_device))
    return "not tested here", f"It can be measured on {where} with --run; no result is kept."


def _machines(claims: Claims, claim: Claim, results: Mapping[str, Sequence[Result]]) -> list[OnMachine]:
    names = [name for figure in claim.figures for name in (figure.test, figure.over) if name]
    by_machine: dict[tuple[str, str], dict[str, Result]] = {}
    for name in dict.fromkeys(names):
        for result in results.get(name, ()):
            by_machine.setdefault((result.machine["device"], result.on), {})[name] = result
    order = sorted(by_machine, key=lambda key: (key[0] != "cuda", key[1]))
    views = [_on_machine(claims, claim, machine, by_machine[device, machine]) for device, machine in order]
    return [view for view in views if view.doubts or view.word != "not tested here"]


def _on_machine(claims: Claims, claim: Claim, machine: str, results: Mapping[str, Result]) -> OnMachine:
    """What the results of one machine, by test, say of a claim."""
    device = claims.tests[next(iter(results))].device
    samples = {name: result.samples for name, result in results.items() if not result.void}
    figures = [figure for figure in claim.figures if claims.tests[figure.test].device == device]
    measured = [bounds(figure, samples) for figure in figures]
    standings = [_standing(*pair) for pair in zip(figures, measured, strict=True)]
    doubts = [doubt for result in results.values() for doubt in result.doubts]
    word = verdict([standing.state for standing in standings], partly=bool(doubts))
    views = [
        _figure(figure, value, standing, claims.tests[figure.test].line)
        for figure, value, standing in zip(figures, measured, standings, strict=True)
    ]
    newest = max(results.values(), key=lambda result: result.date)
    packages = [name for name in ("torch", "transformers") if name in newest.versions]
    void = next((result.void for result in results.values() if result.void), "Nothing was measured.")
    return OnMachine(
        machine,
        device,
        newest.date,
        ", ".join(f"{name} {newest.versions[name]}" for name in packages),
        word,
        remark(standings, word, partly=bool(doubts)),
        _sentence(views) or void,
        views,
        [f"arm {doubt.arm}: {doubt.axis} {doubt.status.replace('_', ' ')}: {doubt.reason}" for doubt in doubts],
    )


def _standing(figure: Figure, measured: Bounds | None) -> Standing:
    return Standing(state(figure, measured), side(figure, measured), measured is not None and measured.low is None)


def _sentence(figures: Sequence[FigureView]) -> str:
    """What was measured against what was claimed, figure by figure."""
    parts = []
    for figure in figures:
        if figure.state in ("missing", "shown"):
            continue
        title = figure.title[0].upper() + figure.title[1:]
        parts.append(f"{title}: {figure.measured}, claimed {figure.claimed}; {figure.standing}.")
    return " ".join(parts)


# --- numbers --------------------------------------------------------------------------------------


def _figure(figure: Figure, measured: Bounds | None, standing: Standing, command: str) -> FigureView:
    def scaled(value: float | None) -> float | None:
        return None if value is None else value * SCALES.get(figure.unit, 1.0)

    return FigureView(
        figure.title,
        figure.unit,
        claimed_text(figure),
        scaled(figure.low),
        scaled(figure.high),
        measured_text(figure.unit, measured),
        scaled(measured.value if measured else None),
        scaled(measured.low if measured else None),
        scaled(measured.high if measured else None),
        standing.state,
        standing_text(standing),
        command,
    )


def claimed_text(figure: Figure) -> str:
    """The claimed range, such as "30 to 50%", or "" where none was claimed."""
    low, high = (None if end is None else _as_said(_number(figure.unit, end)) for end in (figure.low, figure.high))
    if low is None and high is None:
        return ""
    if low == high:
        return f"{low}{_sign(figure.unit)}"
    text = f"at most {high}" if low is None else f"{low} to {high}"
    if high is None:
        text = f"at least {low}" if figure.low else f"more than {low}"
    return f"{text}{_sign(figure.unit)}"


def measured_text(unit: Unit, measured: Bounds | None) -> str:
    """A figure with its interval, such as "42.1% (40.0 to 44.2)"."""
    if measured is None:
        return "not measured"
    text = f"{_number(unit, measured.value)}{_sign(unit) if math.isfinite(measured.value) else ''}"
    if measured.low is None or measured.high is None:
        return f"{text} (one run, no interval)"
    ends = [_number(unit, end) for end in (measured.low, measured.high)]
    return text if ends[0] == ends[1] else f"{text} ({ends[0]} to {ends[1]})"


def _number(unit: Unit, value: float) -> str:
    scaled = value * SCALES.get(unit, 1.0)
    if unit == "nats" and abs(value) < LEAST_NATS:
        return f"under {LEAST_NATS:f}"
    if unit == "tokens":
        return f"{round(scaled):,}" if math.isfinite(scaled) else "never"
    if unit in ("x", "%") and abs(value - 1) < 0.1:  # 100.4% is not "at least 100%" by 100%
        return f"{scaled:.{1 if unit == '%' else 3}f}"
    return three(scaled)


def _as_said(number: str) -> str:
    """A number without the zeros at its end, which would claim digits that nobody gave."""
    return number.rstrip("0").rstrip(".") if "." in number else number


def _sign(unit: Unit) -> str:
    return {"%": "%", "x": "x"}.get(unit, f" {unit}")
