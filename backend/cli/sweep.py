"""`tokendyno sweep`: one arm over batch sizes, lengths and choices, or over many requests."""

import argparse
import csv
import io
from dataclasses import replace

from tokendyno.backend.ablation.course import POSITIONS
from tokendyno.backend.ablation.courses import new_id
from tokendyno.backend.ablation.headline import sweep_headline
from tokendyno.backend.ablation.journal import SWEEP, Heading
from tokendyno.backend.ablation.kinds import Sweep
from tokendyno.backend.ablation.sweep import MAX_POINTS, SIZES, PointResult, SweepDocument, traffic_of
from tokendyno.backend.ablation.sweep_view import sweep_table
from tokendyno.backend.cli.files import give, write_text
from tokendyno.backend.cli.options import Add, add_arm, add_output, workload
from tokendyno.backend.cli.terminal import Block, Column, Styled, Table
from tokendyno.backend.cli.trials import (
    PROMPT,
    Ended,
    add_trial_options,
    check_options,
    measured,
    trial_arm,
    trial_bench,
)
from tokendyno.backend.errors import InputError
from tokendyno.backend.runs.row import choices_text
from tokendyno.backend.traffic.presets import traffic_preset, traffic_presets


def sweep(options: argparse.Namespace) -> int:
    check_options(options, options.csv)
    document, ended = swept(options)
    try:
        give(options, sweep_blocks(document), document)
    finally:  # as `give` does with the document
        if options.csv:
            write_text(options.csv, csv_text(document), "--csv")
    return ended.exit_code()


def swept(options: argparse.Namespace) -> tuple[SweepDocument, Ended]:
    work = workload(options)
    arm = trial_arm(options, options.arm, work)
    over: dict[str, str] = {}
    for name, values in map(_over, options.over):
        if name in over:
            raise InputError(f"--over names {name} twice. Give all of its values at once: {name}=VALUE,VALUE.")
        over[name] = values
    traffic = traffic_of({**over, **arm}, options.traffic)
    if traffic and replace(work, seed=0, repeats=1, ignore_eos=False) != PROMPT:
        raise InputError("Many requests have prompts of their own. Leave out the options of a prompt but --seed.")
    positions = POSITIONS if options.quality else 0
    heading = Heading(
        options.model, arm, [*over.items()], [SWEEP], work, rounds=options.rounds, positions=positions, traffic=traffic
    )
    with trial_bench(options) as bench:
        course = Sweep(bench, new_id(), heading.begun(bench.machine()), None)
        ended = measured(bench, options, course)
        return course.document(options.rounds), ended


def _over(text: str) -> tuple[str, str]:
    name, sign, values = (part.strip() for part in text.partition("="))
    if not (name and sign and values):
        raise InputError(
            f"{text!r} is nothing to sweep over. Write --over batch_size=1,8,32 or --over AXIS=CHOICE,CHOICE."
        )
    return name, ",".join(value.strip() for value in values.split(","))


# --- what is shown --------------------------------------------------------------------------------


def sweep_blocks(document: SweepDocument) -> list[Block]:
    points, over = document.points, document.over
    trials = min((point.trials for point in points if not point.refused), default=0)
    kls = [point.quality.kl_nats if point.quality else None for point in points]
    head, *rows = sweep_table(points, over, kls if any(kl is not None for kl in kls) else None)
    settings, figures = head[: len(over)], head[len(over) : -1]
    columns = [
        *map(Column, settings),
        *(Column(name, right=True, optional=name in ("First token", "Memory")) for name in figures),
        Column(below=True),
    ]
    headline = sweep_headline(points, document.rounds)
    traffic = [f"Traffic: {traffic_preset(document.traffic).title}, but for what varies"] if document.traffic else []
    return [
        [
            *([Styled(headline, "bold")] if headline else []),
            f"{document.model_label}: sweep, {trials} of {document.rounds} rounds",
            f"Arm: {choices_text(document.arm)}",
            *traffic,
        ],
        [Table(columns, rows)],
    ]


FIGURES = [name for name in PointResult.__struct_fields__ if name not in ("settings", "doubtful", "quality", "both")]
COSTS = ("kl_nats", "top1_agreement", "perplexity_ratio")
"""Columns of the CSV, behind what was varied: fields of a point, and of its quality. What was not measured is empty."""


def csv_text(document: SweepDocument) -> str:
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*document.over, *FIGURES, *COSTS])
    for point in document.points:
        values = [getattr(point, name) for name in FIGURES]
        values += [getattr(point.quality, name, None) for name in COSTS]
        lines.writerow([*point.settings.values(), *("" if value is None else value for value in values)])
    return text.getvalue()


def add_commands(add: Add) -> None:
    sub = add("sweep", sweep, "one arm over batch sizes, lengths, requests and choices, with intervals", json=True)
    add_arm(sub, what="the arm: ")
    sub.add_argument(
        "--over",
        nargs="+",
        action="extend",
        required=True,
        metavar="NAME=VALUES",
        help=f"{', '.join(SIZES)} or an axis, with its values: batch_size=1,8,32; several are combined, to at most "
        f"{MAX_POINTS} points",
    )
    sub.add_argument(
        "--traffic",
        metavar="NAME",
        help=f"draw many requests, as batch does (default where they are swept: {traffic_presets()[0].name})",
    )
    add_trial_options(sub, "point", "each point's choices with those of the first point")
    add_output(sub, "--csv", "write the points as CSV; - is standard output")
    sub.set_defaults(prompt_tokens=PROMPT.prompt_tokens)
