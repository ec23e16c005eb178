"""`tokendyno advise`: the best arm for a wish, measured, with a certificate."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import msgspec

from tokendyno.backend.ablation.advise.course import Advice, heading_of_advice
from tokendyno.backend.ablation.advise.result import LABELS, AdviceDocument, Winner, predicted_document
from tokendyno.backend.ablation.advise.space import Builder
from tokendyno.backend.ablation.advise.view import COLUMNS, PREDICTED_COLUMNS, measured_row, predicted_row, reasons
from tokendyno.backend.ablation.advise.wishes import TITLES, WISHES, Limits, Question, read_budget
from tokendyno.backend.ablation.course import POSITIONS
from tokendyno.backend.ablation.courses import new_id
from tokendyno.backend.ablation.trials import Stopped
from tokendyno.backend.cli.commands import bench_of
from tokendyno.backend.cli.files import check_distinct, give, typed_path
from tokendyno.backend.cli.main import BAD_INPUT, OK, STOPPED, CommandFailed
from tokendyno.backend.cli.options import Add, add_elsewhere, add_texts, add_workload, passages_of, workload
from tokendyno.backend.cli.progress import say
from tokendyno.backend.cli.stored import add_history_option
from tokendyno.backend.cli.terminal import Block, Column, Line, Styled, Table, Verbatim
from tokendyno.backend.cli.trials import (
    PROMPT,
    Ended,
    add_places,
    code_of,
    how_to_go_on,
    journal_of,
    places_of,
    trial_task_of,
    watch,
)
from tokendyno.backend.config import workload_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.device import elsewhere
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.quality.texts import shipped_texts
from tokendyno.backend.traffic import Limits as TrafficLimits
from tokendyno.backend.traffic import Traffic
from tokendyno.backend.traffic.trace_file import read_trace
from tokendyno.backend.units import plural

MOST_SHOWN, MOST_AT_ONCE = 12, 16


def advise(options: argparse.Namespace) -> int:
    document, ended = advised(options)
    give(options, advice_blocks(document), document)
    return ended.exit_code()


def advised(options: argparse.Namespace) -> tuple[AdviceDocument, Ended]:
    check_distinct({"--json": options.json, "--journal": options.journal})
    budget_s = read_budget(options.budget)
    limits = Limits.read(options.memory, options.latency, options.ttft, options.quality)
    question = Question(options.model, workload(options, 1), options.wish, limits)
    if options.requests is not None:
        question = _of_requests(options, question)
    texts = passages_of(options)
    with bench_of(options) as bench:
        if (machine := elsewhere(bench.machine(), options.gpu, options.gpus)) is not None:
            if options.ray or options.side_by_side is not None:
                raise InputError("On a GPU that is not here nothing is measured. Leave out --ray and --side-by-side.")
            builder = Builder(bench, question, machine)
            return predicted_document(builder, question, options.gpu, bench.runs), Ended(OK)
        return _measured(bench, options, question, texts, budget_s)


def _of_requests(options: argparse.Namespace, question: Question) -> Question:
    if replace(question.work, seed=0) != PROMPT:
        raise InputError("--requests names prompts and lengths of its own. Leave out the options of a prompt.")
    requests = read_trace(options.requests)
    traffic = Traffic(requests, MOST_AT_ONCE, 0, TrafficLimits(), f"{plural(len(requests), 'request')} of a trace")
    return msgspec.structs.replace(question, work=workload_of(traffic), wish="throughput", traffic=traffic)


def _measured(
    bench: Bench, options: argparse.Namespace, question: Question, texts: Sequence[QualityText], budget_s: float
) -> tuple[AdviceDocument, Ended]:
    """Advice from trials. `texts`: on which quality is read; empty: those that come with tokendyno."""
    places = places_of(options, bench.machine())
    if places and question.wish == "quick-start":
        raise InputError("Starts beside each other slow each other down. Leave out --ray and --side-by-side.")
    heading = heading_of_advice(question, texts, budget_s=budget_s).begun(bench.machine())
    quality = Quality(texts or shipped_texts(), positions=POSITIONS)
    ended, course_id = Ended(OK), new_id()
    with journal_of(bench, options.journal, heading, course_id) as journal:
        advice = Advice(bench, question, journal, quality, course_id)
        say(f"{plural(len(advice.steps.space.arms), 'arm')} may answer; {budget_s:g} s to find the best")
        bench.start()
        try:
            if places:
                advice.perform_in(places, trial_task_of(options, bench), budget_s, say)
            else:
                advice.perform(budget_s, partial(watch, bench))
        except (Stopped, KeyboardInterrupt):
            ended = Ended(STOPPED)
            say(f"stopped. {how_to_go_on(bench, options)}")
        except InputError as error:
            code = code_of(error)
            if not journal.trials:
                raise error if code == BAD_INPUT else CommandFailed(str(error), code) from error
            ended = Ended(code, str(error))
        return advice.document(budget_s), ended


# --- what is shown --------------------------------------------------------------------------------


def advice_blocks(document: AdviceDocument) -> list[Block]:
    """The answer, a card for each winner, every arm that was measured, and what was not."""
    head: list[Line] = [Styled(document.headline, "bold")]
    if document.predicted:
        columns, rows = PREDICTED_COLUMNS, [predicted_row(arm) for arm in document.predicted]
        head += [f"For its script: {document.command}"] if document.command else []
    else:
        spent = f"{document.spent_s:.0f} s of {document.budget_s:g}"
        head.append(f"{document.model_label}: {document.counts}; {spent}")
        columns = COLUMNS
        rows = [[("* " if arm.pareto else "  ") + arm.title, *measured_row(arm)[1:]] for arm in document.measured]
    blocks: list[Block] = [head, *map(_winner, document.winners)]
    if rows:
        optional = ("First token", "Times its bound", "Quality")
        middle = [Column(name, right=True, optional=name in optional) for name in columns[1:-1]]
        blocks.append([Table([Column(columns[0]), *middle, Column(below=True)], rows[:MOST_SHOWN])])
        if len(rows) > MOST_SHOWN:
            blocks.append([f"and {len(rows) - MOST_SHOWN} more (--json has all)."])
    for title, groups in (("Ruled out without a run", document.pruned), ("Not tried", document.not_tried)):
        if groups:
            blocks.append([Styled(title, "bold"), *(f"  {line}" for line in reasons(groups))])
    return blocks


def _winner(winner: Winner) -> Block:
    return [
        Styled(f"{LABELS[winner.label]}: {winner.arm.title}", "bold"),
        f"  {', '.join(f'{value} {what}' for value, what in winner.figures)}",
        *(f"  {line}" for line in (*winner.gets, *winner.certificate)),
        *([Verbatim(f"  {winner.serve}")] if winner.serve else []),
        *([f"  {winner.serve_note}"] if winner.serve_note else []),
        *([f"  Run: tokendyno history show {winner.run}"] if winner.run else []),
    ]


def add_commands(add: Add) -> None:
    details = (
        "Rules, predicted memory and bounds rule arms out; the rest is tried where a gain is expected, the best are "
        "compared in rounds, quality is read, and the winner is measured once more in fresh workers. * marks arms that "
        "nothing beats in both time and memory."
    )
    sub = add("advise", advise, "what should I use: the best arm for a wish, measured", details, json=True)
    wishes = "; ".join(f"{name}: {TITLES[name]}" for name in WISHES)
    sub.add_argument("--for", "--wish", dest="wish", choices=WISHES, default="latency", metavar="WISH", help=wishes)
    sub.add_argument("--memory", default="", metavar="SIZE", help="at most this much peak memory, such as 24GiB")
    sub.add_argument("--latency", default="", metavar="TIME", help="at most this much time a token, such as 15ms")
    sub.add_argument("--ttft", default="", metavar="TIME", help="at most this much time to the first token, such as 1s")
    sub.add_argument(
        "--quality",
        default="same",
        metavar="WHAT",
        help="same: no large cost on given texts (default); a number: KL divergence in nats, at most; any",
    )
    add_texts(sub, "read the quality on this text instead; repeatable")
    sub.add_argument("--budget", default="10m", metavar="TIME", help="how long it may take (default: 10m)")
    sub.add_argument("--journal", type=typed_path, metavar="FILE", help="keep trials there; the same command goes on")
    sub.add_argument(
        "--requests", type=typed_path, metavar="FILE", help="requests of a trace, for the most tokens a second"
    )
    add_places(sub)
    add_elsewhere(sub)
    add_workload(sub)
    sub.set_defaults(max_new_tokens=PROMPT.max_new_tokens, prompt_tokens=PROMPT.prompt_tokens)
    add_history_option(sub)
