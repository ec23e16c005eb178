"""`tokendyno sweep`: one arm over batch sizes, lengths and choices, or over many requests."""

import argparse
import csv
import io
from collections.abc import Callable
from dataclasses import replace

from tokendyno.backend.ablation.headline import sweep_headline
from tokendyno.backend.ablation.journal import Heading
from tokendyno.backend.ablation.kinds import Sweep
from tokendyno.backend.ablation.sweep import MAX_POINTS, SIZES, PointResult, SweepDocument, require_readings, traffic_of
from tokendyno.backend.cli.files import check_writable, give, write_text
from tokendyno.backend.cli.options import Add, add_arm, workload
from tokendyno.backend.cli.terminal import Block, Column, Styled, Table
from tokendyno.backend.cli.trials import (
    Ended,
    add_trial_options,
    bench_of,
    check_options,
    command_id,
    measured,
    trial_arm,
)
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.traffic.presets import traffic_preset, traffic_presets
from tokendyno.backend.units import bytes_text, interval_text, seconds_text, three
from tokendyno.backend.views.gate import cost_remark

PROMPT = Workload(prompt_tokens=128, max_new_tokens=64)
"""What is swept unless options say otherwise."""


def sweep(options: argparse.Namespace) -> int:
    """Run every point once a round, and show each with its interval."""
    check_options(options)
    check_writable(options.csv, "--csv")
    document, ended = swept(options)
    give(options, sweep_blocks(document), document)
    if options.csv:
        write_text(options.csv, csv_text(document), "--csv")
    return ended.exit_code()


def swept(options: argparse.Namespace) -> tuple[SweepDocument, Ended]:
    """Carry the trials out: what they came to, and how they ended."""
    work = workload(options)
    arm = trial_arm(options, options.arm, work)
    over = dict[str, str]()
    for name, values in map(_over, options.over):
        if name in over:
            raise InputError(f"--over names {name} twice. Give all of its values at once: {name}=VALUE,VALUE.")
        over[name] = values
    traffic = traffic_of({**over, **arm}, options.traffic)
    if traffic and replace(work, seed=0, repeats=1, ignore_eos=False) != PROMPT:
        raise InputError("Many requests have prompts of their own. Leave out the options of a prompt but --seed.")
    heading = Heading(options.model, arm, [*over.items()], ["sweep"], work, traffic=traffic)
    with bench_of(options) as bench:
        course = Sweep(bench, command_id(), heading.begun(bench.machine()), None)
        if options.quality:
            require_readings(course.every, traffic)
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


def sweep_blocks(found: SweepDocument) -> list[Block]:
    """A line for each point."""
    trials = min((point.trials for point in found.points if not point.refused), default=0)
    arm = ", ".join(f"{axis}={choice}" for axis, choice in found.arm.items()) or "defaults"
    read = any(point.quality is not None for point in found.points)
    columns = [
        *(Column(name) for name in found.over),
        Column("Time per token", right=True),
        Column("Tokens/s", right=True),
        Column("TTFT", right=True, optional=True),
        Column("Peak memory", right=True, optional=True),
        *([Column("KL divergence", right=True)] if read else []),
        Column(below=True),
    ]
    headline = sweep_headline(found.points)
    return [
        [
            *([Styled(headline, "bold")] if headline else []),
            f"{found.model_label}: sweep, {trials} of {found.rounds} rounds",
            f"Arm: {arm}",
            *([f"Traffic: {traffic_preset(found.traffic).title}, but for what varies"] if found.traffic else []),
        ],
        [Table(columns, [_row(point, read) for point in found.points])],
    ]


def _row(point: PointResult, read: bool) -> list[str]:
    doubts = ", ".join(f"{axis} ({status.replace('_', ' ')})" for axis, status in point.doubtful.items())
    cost = cost_remark(point.quality.cost, point.quality.finer) if point.quality else ""
    step = _said(seconds_text, point.latency_mean_s, point.latency_low_s, point.latency_high_s)
    return [
        *point.settings.values(),
        "refused" if point.refused else step,
        _said(_rate, point.tokens_per_s, point.tokens_per_s_low, point.tokens_per_s_high),
        _said(seconds_text, point.ttft_s, point.ttft_low_s, point.ttft_high_s),
        _said(bytes_text, point.peak_memory_bytes, point.peak_memory_low_bytes, point.peak_memory_bytes),
        *([f"{three(point.quality.kl_nats)} nats" if point.quality else "-"] if read else []),
        point.refused or "; ".join(filter(None, [cost, f"not as planned: {doubts}" if doubts else ""])),
    ]


def _said(words: Callable[[float], tuple[str, str]], value: float | None, low: float | None, high: float | None) -> str:
    return "n/a" if value is None else interval_text(words, value, low, high)


def _rate(value: float) -> tuple[str, str]:
    return three(value), ""


FIGURES = [name for name in PointResult.__struct_fields__ if name not in ("settings", "doubtful", "quality")]
COSTS = ("kl_nats", "top1_agreement", "perplexity_ratio")
"""Columns of the CSV, behind what was varied: fields of a point, and of its quality. What was not measured is empty."""


def csv_text(found: SweepDocument) -> str:
    """The points as CSV."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([*found.over, *FIGURES, *COSTS])
    for point in found.points:
        values = [getattr(point, name) for name in FIGURES]
        values += [getattr(point.quality, name, None) for name in COSTS]
        lines.writerow([*point.settings.values(), *("" if value is None else value for value in values)])
    return text.getvalue()


def add_commands(add: Add) -> None:
    """The command's options."""
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
    sub.add_argument("--csv", metavar="FILE", help="write the points as CSV; - is standard output")
    sub.set_defaults(prompt_tokens=PROMPT.prompt_tokens)
