"""`tokendyno advise`: the best arm for a wish, measured, with a certificate."""

import argparse
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from tokendyno.backend.ablation.advise.course import Advice, heading_of_advice
from tokendyno.backend.ablation.advise.result import LABELS, AdviceDocument, Winner, predicted_document
from tokendyno.backend.ablation.advise.space import Builder
from tokendyno.backend.ablation.advise.view import COLUMNS, PREDICTED_COLUMNS, measured_row, predicted_row
from tokendyno.backend.ablation.advise.wishes import TITLES, WISHES, Limits, Question, read_budget
from tokendyno.backend.ablation.course import POSITIONS
from tokendyno.backend.ablation.journal import Journal
from tokendyno.backend.ablation.trials import Stopped
from tokendyno.backend.cli.files import check_folder, check_writable, give, read_prompt
from tokendyno.backend.cli.main import BAD_INPUT, OK, STOPPED, CommandFailed
from tokendyno.backend.cli.options import Add, add_elsewhere, add_workload, workload
from tokendyno.backend.cli.progress import close, follow, say, say_notes
from tokendyno.backend.cli.stored import add_history_option, history_of
from tokendyno.backend.cli.terminal import Block, Column, Styled, Table, Verbatim
from tokendyno.backend.cli.trials import add_places, command_id, places_of, trial_task_of
from tokendyno.backend.config import Workload, workload_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.fit.device import elsewhere
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.quality.texts import passages, shipped_texts
from tokendyno.backend.runs.run import Run
from tokendyno.backend.traffic import Limits as TrafficLimits
from tokendyno.backend.traffic import Traffic
from tokendyno.backend.traffic.trace_file import read_trace

PROMPT = Workload(prompt_tokens=128, max_new_tokens=64)
"""What arms are tried with unless options say otherwise."""

MOST_SHOWN, MOST_AT_ONCE = 12, 16


def advise(options: argparse.Namespace) -> int:
    """Seek advice until it is found or the budget is spent, and show it."""
    document, code, failure = advised(options)
    give(options, advice_blocks(document), document)
    if failure:
        raise CommandFailed(failure, code)
    return code


def advised(options: argparse.Namespace) -> tuple[AdviceDocument, int, str]:
    """What was found, the exit code, and why it ended early, "" if it did not or was stopped."""
    check_writable(options.json)
    check_folder(options.models_dir)
    budget_s = read_budget(options.budget)
    limits = Limits.read(options.memory, options.latency, options.ttft, options.quality)
    asked = Question(options.model, workload(options, 1), options.wish, limits)
    if options.requests is not None:
        asked = _of_requests(options, asked)
    own = [one for path in options.text or [] for one in passages(path.stem, read_prompt(path, "--text"))]
    bench = open_bench(history_of(options), options.models_dir)
    try:
        say_notes(bench)
        if (there := elsewhere(bench.machine(), options.gpu, options.gpus)) is not None:
            if options.ray or options.side_by_side is not None:
                raise InputError("On a GPU that is not here nothing is measured. Leave out --ray and --side-by-side.")
            return predicted_document(Builder(bench, asked, there), asked, options.gpu, bench.runs), OK, ""
        return _measured(bench, options, asked, own, budget_s)
    finally:
        close(bench)


def _of_requests(options: argparse.Namespace, asked: Question) -> Question:
    """The same of many requests, which a file lists."""
    if replace(asked.work, seed=0) != PROMPT:
        raise InputError("--requests names prompts and lengths of its own. Leave out the options of a prompt.")
    found = read_trace(options.requests)
    traffic = Traffic(found, MOST_AT_ONCE, 0, TrafficLimits(), f"{len(found)} requests of a trace")
    return msgspec.structs.replace(asked, work=workload_of(traffic), wish="throughput", traffic=traffic)


def _measured(
    bench: Bench,
    options: argparse.Namespace,
    asked: Question,
    own: Sequence[QualityText],
    budget_s: float,
) -> tuple[AdviceDocument, int, str]:
    places = places_of(options, bench.machine())
    if places and asked.wish == "quick-start":
        raise InputError("Starts beside each other slow each other down. Leave out --ray and --side-by-side.")
    heading = heading_of_advice(asked, own).begun(bench.machine())
    texts = Quality(own or shipped_texts(), positions=POSITIONS)
    code, failure = OK, ""
    with contextlib.closing(Journal(options.journal, heading)) as journal:
        advice = Advice(bench, asked, journal, texts, command_id())
        say(f"{len(advice.steps.space.arms):,} arms may answer; {budget_s:g} s to find the best")
        bench.start()

        def watch(run: Run, what: str) -> None:
            say(what)
            follow(bench, run)

        try:
            if places:
                advice.perform_in(places, trial_task_of(options, bench), budget_s, say)
            else:
                advice.perform(budget_s, watch)
        except (Stopped, KeyboardInterrupt):
            code = STOPPED
            say("stopped." + (f" What was measured is kept in {options.journal}." if options.journal else ""))
        except InputError as error:
            if not journal.trials:
                raise
            code, failure = BAD_INPUT, str(error)
        return advice.document(budget_s), code, failure


# --- what is shown --------------------------------------------------------------------------------


def advice_blocks(found: AdviceDocument) -> list[Block]:
    """The answer, a card for each winner, every arm that was measured, and what was not."""
    headline = Styled(found.headline, "bold")
    spent = f"{found.model_label}: {found.counts}; {found.spent_s:.0f} s of {found.budget_s:g}"
    head: Block = [headline] if found.predicted else [headline, spent]
    columns, rows = PREDICTED_COLUMNS, [predicted_row(one) for one in found.predicted]
    if not found.predicted:
        columns = COLUMNS
        rows = [[("* " if arm.pareto else "  ") + arm.title, *measured_row(arm)[1:]] for arm in found.measured]
    blocks: list[Block] = [head, *(_winner(one) for one in found.winners)]
    if rows:
        optional = ("First token", "Its bound", "Quality")
        middle = [Column(name, right=True, optional=name in optional) for name in columns[1:-1]]
        blocks.append([Table([Column(columns[0]), *middle, Column(below=True)], rows[:MOST_SHOWN])])
        if len(rows) > MOST_SHOWN:
            blocks.append([f"and {len(rows) - MOST_SHOWN} more (--json has all)."])
    for title, groups in (("Ruled out without a run", found.pruned), ("Not tried", found.not_tried)):
        if groups:
            lines = (f"{one.count:>5}  {one.why} ({one.arms[0]}{', ...' * (one.count > 1)})" for one in groups[:8])
            blocks.append([Styled(title, "bold"), *lines])
    return blocks


def _winner(one: Winner) -> Block:
    return [
        Styled(f"{LABELS[one.label]}: {one.arm.title}", "bold"),
        f"  {', '.join(f'{value} {what}' for value, what in one.figures)}",
        *(f"  {line}" for line in (*one.gets, *one.certificate)),
        *([Verbatim(f"  {one.serve}")] if one.serve else []),
        *([f"  {one.serve_note}"] if one.serve_note else []),
        *([f"  Run: tokendyno history show {one.run}"] if one.run else []),
    ]


def add_commands(add: Add) -> None:
    """The command's options."""
    more = (
        "Rules, predicted memory and bounds rule arms out; the rest is tried where a gain is expected, the best are "
        "compared in rounds, quality is read, and the winner is measured once more in fresh workers. * marks arms that "
        "nothing beats in both time and memory."
    )
    sub = add("advise", advise, "what should I use: the best arm for a wish, measured", more, json=True)
    wish = "; ".join(f"{name}: {TITLES[name]}" for name in WISHES)
    sub.add_argument("--for", "--wish", dest="wish", choices=WISHES, default="latency", metavar="WISH", help=wish)
    sub.add_argument("--memory", default="", metavar="SIZE", help="at most this much peak memory, such as 24GiB")
    sub.add_argument("--latency", default="", metavar="TIME", help="at most this much time a token, such as 15ms")
    sub.add_argument("--ttft", default="", metavar="TIME", help="at most this much time to the first token, such as 1s")
    sub.add_argument(
        "--quality",
        default="same",
        metavar="WHAT",
        help="same: no large cost on given texts (default); a number: KL divergence in nats, at most; any",
    )
    sub.add_argument(
        "--text", type=Path, action="append", metavar="FILE", help="read the quality on this text instead; repeatable"
    )
    sub.add_argument("--budget", default="10m", metavar="TIME", help="how long it may take (default: 10m)")
    sub.add_argument("--journal", type=Path, metavar="FILE", help="keep trials there; the same command goes on")
    sub.add_argument(
        "--requests",
        type=Path,
        metavar="FILE",
        help="requests of a trace, for the most tokens a second",
    )
    add_places(sub)
    add_elsewhere(sub)
    add_workload(sub)
    sub.set_defaults(max_new_tokens=PROMPT.max_new_tokens, prompt_tokens=PROMPT.prompt_tokens)
    add_history_option(sub)
