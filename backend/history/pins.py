"""Two to five arms of any runs side by side: what they ran under, what they chose, what was measured, and what sets
them apart besides their choices.

A pin is `RUN.ARM`. Whoever has a run's id may see it, as by its permanent link.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.optimizations import axis_title, choice_title, titles_text
from tokendyno.backend.redact import without_controls
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.quality import whole_reading
from tokendyno.backend.runs.row import choices_text, machine_text, work_text
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import plural, three
from tokendyno.backend.views.comparison import SAME_BYTES, less_or_more, lowered, memory_noise
from tokendyno.backend.views.details import interval_tile
from tokendyno.backend.views.ledger import and_list, ledger_summary, rows_of
from tokendyno.backend.views.pareto import Cost, Pareto, pareto
from tokendyno.backend.views.tiles import Tile, arm_tiles, in_bytes, tile

FEWEST, MOST = 2, 5

MAX_VALUE = 48
"""Characters of a condition in a sentence."""

MAX_PINS_TEXT = MOST * 160

MAX_TEXT = 240
"""Characters of a prompt, and of an arm's text."""

UNKNOWN = "not recorded"

ALIKE = ("Model", "Timed", "Prompt tokens", "New tokens", "Passes", "Batch size", "Requests")
"""Where one of these differs, figures are not set against each other."""

_ONLY_IF_DIFFERENT = ("Driver", "Timed", "tokendyno")
_RUN = re.compile(r"[A-Za-z0-9_-]{1,64}")

Group = Literal["conditions", "choices", "figures", "ledger", "text"]


class Pin(NamedTuple):
    """An arm of a run."""

    run: str
    arm: str


class Cell(msgspec.Struct, frozen=True):
    """A value, a remark in small print, and how it compares with that of the first arm; "" where there is nothing to
    say."""

    text: str
    note: str = ""
    against: str = ""


class Figure(NamedTuple):
    """A figure in words and as a number.

    value     None where it is not set against others
    noise     the share by which it may differ without meaning
    interval  (low, high) of its mean over several runs, in the unit of `value`
    """

    label: str
    cell: Cell
    value: float | None = None
    noise: float = 0.0
    interval: tuple[float, float] | None = None

    def against(self, first: "Figure") -> str:
        """This figure against that of the first pinned arm, in words; "" where either is not known."""
        if not self.value or not first.value:
            return ""
        change, noise = self.value / first.value - 1, False
        if self.interval is not None and first.interval is not None:
            noise = self.interval[0] <= first.interval[1] and self.interval[1] >= first.interval[0]
        return _than_1(change if abs(change) >= max(self.noise, first.noise) else 0.0, noise)


def _than_1(change: float, noise: bool) -> str:
    """A change by a share against the first pinned arm, in words. `noise`: it may be chance."""
    difference = less_or_more(change)
    if not difference:
        return "the same as 1"
    words = f"{difference} that of 1" if difference.endswith("×") else f"{difference} than 1"
    return f"{words}, within noise" if noise else words


class SideRow(msgspec.Struct, frozen=True):
    """One line of the table; `differs`: not all arms have the same."""

    group: Group
    label: str
    cells: list[Cell]
    differs: bool = False


class PinnedArm(msgspec.Struct, frozen=True):
    """The head of a column. `label`: 1 to 5; `title`: the run's model and sizes; `unlike`: the conditions in which it
    differs from the first arm; `alike`: whether its figures are set against those of the first."""

    label: str
    pin: str
    run: str
    arm: str
    title: str
    choices: str
    created: float
    status: str
    unlike: list[str]
    alike: bool


class SideBySide(msgspec.Struct, frozen=True):
    """The table. `remarks`: sentences on what else differs; `missing`: pins of which there is no run or arm here;
    `pareto`: the arms by time, memory and, where texts were read, perplexity."""

    arms: list[PinnedArm]
    rows: list[SideRow]
    remarks: list[str]
    missing: list[str]
    pareto: Pareto | None = None
    kind: str = "pins"
    schema: int = 3


class _Arm(NamedTuple):
    """A pinned arm with everything that its column needs."""

    pin: Pin
    run: Snapshot
    conditions: Mapping[str, str]
    figures: Mapping[str, Figure]


def read_pins(text: str) -> list[Pin]:
    """Pins as an address or a command names them: RUN.ARM,RUN.ARM. InputError for what is no pin, and for too many."""
    if len(text) > MAX_PINS_TEXT:
        raise InputError(f"These are too many pins: {FEWEST} to {MOST} arms can stand side by side. Remove some.")
    pins = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        run, sign, arm = part.partition(".")
        if not (sign and arm and _RUN.fullmatch(run)):
            raise InputError(f"{shown(part)!r} is no pin. Write RUN.ARM, such as 5f2a91c04b7d3e8812aa90cc.A.")
        if Pin(run, arm) not in pins:
            pins.append(Pin(run, arm))
    if len(pins) > MOST:
        raise InputError(f"{len(pins)} arms are pinned; {FEWEST} to {MOST} can stand side by side. Remove some.")
    return pins


def beside(pins: Sequence[Pin], runs: RunLog, titles: bool = False) -> SideBySide:
    """The pinned arms side by side, as far as they are known here. InputError for fewer than two."""
    if len(pins) < FEWEST:
        raise InputError(f"Pin {FEWEST} to {MOST} arms to see them side by side.")
    arms, missing = list[_Arm](), list[str]()
    for pin in pins:
        run = runs.get(pin.run)
        if run is None or pin.arm not in run.arms:
            missing.append(f"{pin.run}.{pin.arm}")
        else:
            snapshot = run.snapshot()
            arms.append(_Arm(pin, snapshot, conditions(snapshot, pin.arm), figures(snapshot, pin.arm)))
    if not arms:
        raise InputError("None of these runs is kept here any more. Pin others.")
    heads = [_head(n, arm, arms[0], titles) for n, arm in enumerate(arms)]
    rows = [*_condition_rows(arms), *_choice_rows(arms, titles), *_figure_rows(arms, heads)]
    rows += [_row("ledger", "Ledger", [Cell(_ledger(arm)) for arm in arms])]
    rows += [_row("text", "Text begins", [Cell(beginning(arm.run.arms[arm.pin.arm].text)) for arm in arms])]
    return SideBySide(heads, rows, _remarks(arms, heads, rows), missing, _pareto(arms, heads))


def _pareto(arms: Sequence[_Arm], heads: Sequence[PinnedArm]) -> Pareto | None:
    """Arms compete with those of the same model and lengths as the first; others stand alone."""
    costs = []
    for arm, head in zip(arms, heads, strict=True):
        time, memory, perplexity = (
            figure.value if (figure := arm.figures.get(key)) else None for key in ("latency", "memory", "perplexity")
        )
        title = f"pin {head.label}, {head.title}" + (f" ({head.choices})" if head.choices else "")
        costs.append(Cost(title, time, memory, perplexity, "" if head.alike else head.label, head.label))
    return pareto(costs, "perplexity")


def _head(n: int, arm: _Arm, first: _Arm, titles: bool) -> PinnedArm:
    created = arm.run.created
    unlike = [label for label, text in arm.conditions.items() if text != first.conditions.get(label)]
    choices = arm.run.requested(arm.pin.arm).choices
    return PinnedArm(
        str(n + 1),
        f"{arm.pin.run}.{arm.pin.arm}",
        arm.pin.run,
        arm.pin.arm,
        without_controls(f"{created.model_label}, {work_text(created)}"),
        without_controls((titles_text if titles else choices_text)(choices)),
        created.created,
        arm.run.status,
        unlike,
        alike=not any(label in ALIKE for label in unlike),
    )


# --- rows -----------------------------------------------------------------------------------------


def _condition_rows(arms: Sequence[_Arm]) -> list[SideRow]:
    """Conditions of all arms; packages beyond torch and transformers where they differ."""
    labels = dict.fromkeys(label for arm in arms for label in arm.conditions)
    rows = [_row("conditions", label, [Cell(arm.conditions.get(label, "n/a")) for arm in arms]) for label in labels]
    known = [arm.run.created.versions for arm in arms]
    if all(known):
        for package in sorted({name for versions in known for name in versions} - labels.keys()):
            cells = [Cell(without_controls(versions.get(package, "none"))) for versions in known]
            if len({cell.text for cell in cells}) > 1:
                rows.append(_row("conditions", package, cells))
    prompts = {(arm.run.request.workload.prompt, arm.run.request.workload.system) for arm in arms}
    if len(prompts) > 1:  # though they may begin alike
        rows = [msgspec.structs.replace(row, differs=row.differs or row.label == "Prompt") for row in rows]
    return [row for row in rows if row.differs or row.label not in _ONLY_IF_DIFFERENT]


def _choice_rows(arms: Sequence[_Arm], titles: bool) -> list[SideRow]:
    """Axes on which the arms were planned differently."""
    planned = [arm.run.planned(arm.pin.arm).planned for arm in arms]
    axes = dict.fromkeys(axis for choices in planned for axis in choices)
    rows = []
    for axis in axes:
        names = [choices.get(axis, "n/a") for choices in planned]
        if len(set(names)) > 1:
            named = [choice_title(axis, name) for name in names] if titles else names
            rows.append(
                _row("choices", axis_title(axis) if titles else axis, [Cell(without_controls(name)) for name in named])
            )
    return rows


def _figure_rows(arms: Sequence[_Arm], heads: Sequence[PinnedArm]) -> list[SideRow]:
    rows = []
    for key in dict.fromkeys(key for arm in arms for key in arm.figures):
        figures = [arm.figures.get(key) for arm in arms]
        cells = [figure.cell if figure else Cell("n/a") for figure in figures]
        for n, figure in enumerate(figures[1:], 1):
            if figure and figures[0] and heads[n].alike:
                against = _by_pairs(key, arms[0], arms[n]) or figure.against(figures[0])
                cells[n] = msgspec.structs.replace(cells[n], against=against)
        rows.append(_row("figures", next(figure.label for figure in figures if figure), cells))
    return rows


def _by_pairs(key: str, first: _Arm, arm: _Arm) -> str:
    """What the pairs of a run say of one of its arms against the other, as its card does: they tell more than both
    intervals. "" for other figures, and for arms of two runs."""
    compared = arm.run.comparison
    if compared is None or arm.pin.run != first.pin.run or key not in ("latency", "rate", "batch-useful"):
        return ""
    speed = compared.ratio if first.pin.arm == next(iter(arm.run.arms)) else 1 / compared.ratio
    noise = arm.run.equal_arms or compared.outcome in ("no_difference", "undecided")
    return _than_1((1 / speed if key == "latency" else speed) - 1, noise)


def _ledger(arm: _Arm) -> str:
    rows = rows_of(arm.run, arm.pin.arm)
    return ledger_summary(rows) if rows else "none: the arm did not end"


def _row(group: Group, label: str, cells: list[Cell]) -> SideRow:
    return SideRow(group, label, cells, len({cell.text for cell in cells}) > 1)


# --- what else differs ----------------------------------------------------------------------------


def _remarks(arms: Sequence[_Arm], heads: Sequence[PinnedArm], rows: Sequence[SideRow]) -> list[str]:
    remarks = []
    different = [row for row in rows if row.group == "conditions" and row.differs]
    if different:
        named = [f"{lowered(row.label)} ({_values(row.cells)})" for row in different]
        remarks.append(f"Besides their choices these arms differ in {and_list(named)}.")
    elif len(arms) > 1:  # the others may be kept no more
        remarks.append("Same model, prompt and lengths, same machine, same versions: only the choices differ.")
    if len(arms) > 1 and not any(row.group == "choices" for row in rows):
        remarks.append("Their choices are the same.")
    unlike = [head.label for head in heads if not head.alike]
    if unlike:
        remarks.append(
            f"Figures of {and_list(unlike)} are not set against those of 1: model, lengths or batch size differ."
        )
    if any(not arm.run.created.versions for arm in arms):
        unversioned = [head.label for head, arm in zip(heads, arms, strict=True) if not arm.run.created.versions]
        remarks.append(f"Versions of {and_list(unversioned)} were not recorded, so they may differ as well.")
    single = [head.label for head, arm in zip(heads, arms, strict=True) if len(arm.run.arms[arm.pin.arm].finishes) == 1]
    if single and any(not arm.run.request.traffic for arm in arms):
        remarks.append(f"Of {and_list(single)} there is one run, so no interval: small differences may be noise.")
    return remarks


def _values(cells: Sequence[Cell]) -> str:
    """What the arms have, each once; of long texts the beginning."""
    texts = (cell.text if len(cell.text) <= MAX_VALUE else f"{cell.text[:MAX_VALUE]}..." for cell in cells)
    return "; ".join(dict.fromkeys(texts))


# --- figures: those of a pinned arm, and how one compares with the same figure of another arm ------


def figures(run: Snapshot, name: str) -> dict[str, Figure]:
    """Figures by key, in the order in which they are shown. Those of many requests have keys of their own: they include
    waiting."""
    figures, shown, prefix = dict[str, Figure](), arm_tiles(run, name), ""
    known: dict[str, tuple[float | None, float, tuple[float, float] | None]]
    if run.request.traffic is not None:
        many, prefix, memory_bytes = run.batch_summaries[name], "batch-", run.arms[name].peak_memory_bytes
        shown.append(tile("memory", "Peak memory", in_bytes(memory_bytes), run.memory_label))
        known = {
            "useful": (many.useful_tokens_s, 0.0, None),
            "ttft": (many.ttft.median_s, 0.0, None),
            "token": (many.token.median_s, 0.0, None),
            "memory": (memory_bytes, memory_noise(run), None),
        }
    else:
        s = run.summaries[name]
        rate = s.latency_interval_s and (1 / s.latency_interval_s[1], 1 / s.latency_interval_s[0])
        known = {
            "ttft": (s.ttft_s, 0.0, s.ttft_interval_s),
            "latency": (s.latency_mean_s, 0.0, s.latency_interval_s),
            "rate": (s.tokens_per_s, 0.0, rate),
            "memory": (s.peak_memory_bytes, memory_noise(run), None),
            "kv": (s.kv_bytes, SAME_BYTES, None),
        }
        interval = interval_tile(s, run.unit)
        shown.insert([entry.key for entry in shown].index("latency") + 1, interval)
    for entry in shown:
        figures[prefix + entry.key] = Figure(entry.label, _cell(entry), *known.get(entry.key, (None, 0.0, None)))
    reading = whole_reading(run)
    if reading is not None:
        arm_reading = reading.arms[name]
        cell = Cell(three(arm_reading.perplexity), f"{reading.positions:,} positions")
        figures["perplexity"] = Figure("Perplexity", cell, arm_reading.perplexity)
    return figures


def _cell(tile: Tile) -> Cell:
    return Cell(f"{tile.value} {tile.unit}".strip(), tile.note)


# --- conditions: what a pinned arm ran under -------------------------------------------------------


def conditions(run: Snapshot, name: str) -> dict[str, str]:
    """What an arm ran under, by label, in the order in which it is shown."""
    created = run.created
    by_label = {
        "Model": without_controls(created.model_label),
        "Machine": without_controls(machine_text(created.machine)) or UNKNOWN,
        "Driver": without_controls(created.machine.get("driver", "none")),
    }
    for package in ("tokendyno", "torch", "transformers"):
        by_label[package] = without_controls(created.versions.get(package, "none" if created.versions else UNKNOWN))
    traffic = run.request.traffic
    if traffic is not None:
        return by_label | {"Requests": without_controls(traffic.label) or plural(len(traffic.requests), "request")}
    return by_label | _workload(run, name)


def _workload(run: Snapshot, name: str) -> dict[str, str]:
    work, arm, tokens = run.request.workload, run.arms[name], run.unit == "token"
    conditions = {
        "Prompt": _prompt(run),
        "Prompt tokens": f"{arm.started.prompt_tokens:,}" if arm.started else "n/a",
        "New tokens" if tokens else "Passes": f"{len(arm.t_s):,}",
        "Batch size": f"{work.batch_size:,}",
        "Timed": "tokens" if tokens else "forward passes",
    }
    if tokens:
        sampling = [f"temperature {work.temperature:g}, seed {work.seed}" if work.temperature else "greedy"]
        sampling += [f"top-k {work.top_k}"] if work.top_k else []
        sampling += [f"top-p {work.top_p:g}"] if work.top_p < 1 else []
        conditions["Sampling"] = ", ".join(sampling)
    return conditions


def _prompt(run: Snapshot) -> str:
    work = run.request.workload
    if run.request.quality is not None:
        return beginning(", ".join(text.name for text in run.request.quality.texts))
    details = [f"cut or repeated to {work.prompt_tokens:,} tokens"] if work.prompt_tokens else []
    details += ["chat"] if work.chat else []
    details += [f"reasoning {work.reasoning_effort}"] if work.reasoning_effort else []
    details += [f"system: {work.system}"] if work.system else []
    text = beginning(work.prompt) or "synthetic"
    return beginning(f"{text} ({'; '.join(details)})" if details else text)


def beginning(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(without_controls(text).split())
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}..."
