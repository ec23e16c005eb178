"""`tokendyno ablate`: what each of several changes is worth."""

import argparse

from tokendyno.backend.ablation.course import POSITIONS
from tokendyno.backend.ablation.courses import new_id
from tokendyno.backend.ablation.headline import ablation_headline
from tokendyno.backend.ablation.journal import Heading
from tokendyno.backend.ablation.kinds import Ablation
from tokendyno.backend.ablation.result import AblationDocument, StepResult
from tokendyno.backend.ablation.steps import KINDS, MAX_CHANGES, Kind
from tokendyno.backend.cli.files import give
from tokendyno.backend.cli.options import Add, add_arm, workload
from tokendyno.backend.cli.progress import say
from tokendyno.backend.cli.terminal import Block, Column, Styled, Table
from tokendyno.backend.cli.trials import add_trial_options, check_options, measured, trial_arm, trial_bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import is_random
from tokendyno.backend.runs.row import choices_text
from tokendyno.backend.units import bytes_text, seconds_text, three
from tokendyno.backend.views.quality import RANDOM_WEIGHTS, TOLERANCES, cost_remark


def ablate(options: argparse.Namespace) -> int:
    check_options(options)
    work = workload(options)
    changes = [_change(text) for text in options.add]
    base, kinds = trial_arm(options, options.base, work), options.steps or [*KINDS]
    positions = POSITIONS if options.quality else 0
    heading = Heading(options.model, base, changes, kinds, work, rounds=options.rounds, positions=positions)
    with trial_bench(options) as bench:
        course = Ablation(bench, new_id(), heading.begun(bench.machine()), None)
        for (level, axis, reason), arm in course.admitted.said.items():
            say(f"{level} ({arm or 'base'}, {axis}): {reason}")
        ended = measured(bench, options, course, together=True)
        document = course.document(options.rounds)
    give(options, ablation_blocks(document), document)
    return ended.exit_code()


def _change(text: str) -> tuple[str, str]:
    axis, sign, choice = (part.strip() for part in text.partition("="))
    if not (axis and sign and choice) or "," in text:
        raise InputError(f"{text!r} is no change. Write one axis=choice after --add, or several with spaces between.")
    return axis, choice


# --- what is shown --------------------------------------------------------------------------------

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


def ablation_blocks(document: AblationDocument) -> list[Block]:
    """The base, then the steps of each kind; what could not run, or changed more than was asked, says so."""
    base, headline = document.steps[0], ablation_headline(document.steps, document.rounds)
    blocks: list[Block] = [
        [
            *([Styled(headline, "bold")] if headline else []),
            f"{document.model_label}: ablation, {base.trials} of {document.rounds} rounds",
            f"Base: {choices_text(base.choices)}; {_time(base)} a token, {_bytes(base.peak_memory_bytes)}",
        ]
    ]
    for kind, heading in _TITLES.items():
        before = "without " if kind == "without" else ""
        rows = [_row(step, before + step.change) for step in document.steps if step.kind == kind]
        if rows and kind == "without":
            rows = [_row(step, "all of them") for step in document.steps if step.kind == "all"] + rows
        if rows:
            blocks.append([Styled(heading, "bold"), Table(_COLUMNS, rows)])
    if any(step.comparison for step in document.steps):
        blocks.append([_SPEED_UP])
    if any(step.comparison and step.comparison.pairs == 1 for step in document.steps):
        blocks.append(["One round gives no interval, so nothing is known of the scatter. Use --rounds 3."])
    elif any(step.comparison and step.comparison.pairs == 2 and not step.comparison.telling for step in document.steps):
        blocks.append(["After two rounds an interval can be wider than its figure: it is left out. Use --rounds 3."])
    if any(step.quality for step in document.steps):
        limits = f"{RANDOM_WEIGHTS}." if is_random(document.model) else f"Quality costs: {TOLERANCES}."
        blocks.append([limits])
    return blocks


def _row(step: StepResult, name: str) -> list[str]:
    if step.refused:
        return [name, "refused", "", "", "", "", "", step.refused]
    comparison, quality = step.comparison, step.quality
    interval = "n/a"
    if comparison and comparison.low and comparison.high and comparison.telling:
        interval = f"{three(comparison.low)} to {three(comparison.high)}"
    return [
        name,
        _time(step),
        f"{three(comparison.ratio)}\u00d7" if comparison else "n/a",
        interval,
        _bytes(step.peak_memory_bytes),
        {True: "same", False: "differs", None: "n/a"}[step.same_text],
        f"{f'{quality.cost}, ' * bool(quality.cost)}KL {three(quality.kl_nats)}" if quality else "n/a",
        _remark(step),
    ]


def _remark(step: StepResult) -> str:
    also = ", ".join(f"{axis} from {before} to {after}" for axis, (before, after) in step.also_changed.items())
    doubts = ", ".join(f"{axis} ({status.replace('_', ' ')})" for axis, status in step.doubtful.items())
    cost = cost_remark(step.quality.cost, step.quality.finer) if step.quality else ""
    noise = "changes nothing of the plan: what differs is noise" if step.equal else ""
    parts = [noise, cost, f"also changed: {also}" if also else "", f"not as planned: {doubts}" if doubts else ""]
    return "; ".join(filter(None, parts))


def _time(step: StepResult) -> str:
    return " ".join(seconds_text(step.latency_mean_s)) if step.latency_mean_s is not None else "n/a"


def _bytes(size: int | None) -> str:
    return " ".join(bytes_text(size)) if size else "n/a"


def add_commands(add: Add) -> None:
    summary = "what each of several changes is worth: alone, left out, and one after the other"
    details = (
        "A step that is the same arm as another runs once. Under its row stand what else changed, what the ledger did "
        "not show as planned, and a quality cost."
    )
    sub = add("ablate", ablate, summary, details, json=True)
    add_arm(sub, "--base", "where it begins: ")
    sub.add_argument(
        "--add",
        nargs="+",
        action="extend",
        required=True,
        metavar="AXIS=CHOICE",
        help=f"1 to {MAX_CHANGES} changes, in order",
    )
    sub.add_argument(
        "--steps",
        nargs="+",
        choices=KINDS,
        metavar="KIND",
        help="alone (the base and one change), without (all but one, against all), stair (one after the other); "
        "default: all three",
    )
    add_trial_options(sub, "arm", "each arm with the base")
