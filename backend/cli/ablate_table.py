"""An ablation as text for a terminal: a table for each kind of step."""

from backend.ablation.result import AblationDocument, StepResult
from backend.ablation.steps import Kind
from backend.cli.run_table import joined
from backend.terminal import Column, Screen, fold, table
from backend.units import bytes_text, seconds_text, three
from backend.views.gate import RANDOM, cost_remark
from backend.views.quality import TOLERANCES

_TITLES: dict[Kind, str] = {
    "alone": "Each change alone, against the base",
    "without": "All changes but one, against all of them",
    "stair": "One after the other, each against the one before",
}
_COLUMNS = (
    Column("Change"),
    Column("Time a token", right=True),
    Column("Speed-up", right=True),
    Column("95% interval", right=True, optional=True),
    Column("Peak memory", right=True, optional=True),
    Column("Text", optional=True),
    Column("Quality", optional=True),
    Column(below=True),
)
_SPEED_UP = "Time a token: mean of a run, geometric mean over runs; speed-up: the same over pairs of runs."


def ablation_table(found: AblationDocument, screen: Screen) -> str:
    """The base, then the steps of each kind; what could not run, or changed more than was asked, says so."""
    base = found.steps[0]
    trials = f"{base.trials} of {found.rounds} rounds"
    title = [*fold(f"{found.model_label}: ablation, {trials}", screen.columns)]
    base_arm = ", ".join(f"{axis}={choice}" for axis, choice in base.choices.items()) or "defaults"
    title += fold(f"Base: {base_arm}; {_time(base)} a token, {_bytes(base.peak_memory_bytes)}", screen.columns)
    blocks = [title]
    for kind, heading in _TITLES.items():
        steps = [step for step in found.steps if step.kind == kind]
        if not steps:
            continue
        whole = [step for step in found.steps if step.kind == "all"] if kind == "without" else []
        rows = [_row(step, f"without {step.change}" if kind == "without" else step.change) for step in steps]
        rows = [_row(step, "all of them") for step in whole] + rows
        blocks.append([screen.paint(heading, "bold"), *table(_COLUMNS, rows, screen)])
    if any(step.comparison for step in found.steps):
        blocks.append(fold(_SPEED_UP, screen.columns))
    if any(step.comparison and step.comparison.pairs == 1 for step in found.steps):
        blocks.append(
            fold("One round gives no interval, so nothing is known of the scatter. Use --rounds 3.", screen.columns)
        )
    if any(step.quality for step in found.steps):
        limits = f"{RANDOM}." if found.model.startswith("random:") else f"Quality costs: {TOLERANCES}."
        blocks.append(fold(limits, screen.columns))
    return joined(blocks)


def _row(step: StepResult, name: str) -> list[str]:
    if step.refused:
        return [name, "refused", "", "", "", "", "", step.refused]
    found, quality = step.comparison, step.quality
    bounds = f"{three(found.low)} to {three(found.high)}" if found and found.low and found.high else "n/a"
    same = {True: "same", False: "differs", None: "n/a"}[step.same_text]
    return [
        name, _time(step), f"{three(found.ratio)}x" if found else "n/a", bounds, _bytes(step.peak_memory_bytes), same,
        f"{f'{quality.cost}, ' * bool(quality.cost)}KL {three(quality.kl_nats)}" if quality else "n/a", _remark(step),
    ]  # fmt: skip


def _remark(step: StepResult) -> str:
    """What it costs in quality, what else changed, and what the ledger does not show as planned."""
    also = ", ".join(f"{axis} from {there} to {here}" for axis, (there, here) in step.also_changed.items())
    doubts = ", ".join(f"{axis} ({status.replace('_', ' ')})" for axis, status in step.doubtful.items())
    cost = cost_remark(step.quality.cost, step.quality.finer) if step.quality else ""
    same = "changes nothing of the plan: what differs is noise" if step.equal else ""
    parts = [same, cost, f"also changed: {also}" if also else "", f"not as planned: {doubts}" if doubts else ""]
    return "; ".join(filter(None, parts))


def _time(step: StepResult) -> str:
    return " ".join(seconds_text(step.latency_mean_s)) if step.latency_mean_s is not None else "n/a"


def _bytes(size: int | None) -> str:
    return " ".join(bytes_text(size)) if size else "n/a"
