"""The bench without a browser: `tokendyno compare | run | check | fit | export | models | doctor`.

Progress goes to standard error, results to standard output. Exit codes: 0, 2 for bad input, 3 for a failed
run, 130 when it was stopped with Ctrl-C (the partial result is still written).
"""

import argparse
import io
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from backend import hardware
from backend.arms import parse_arm
from backend.config import EFFORTS, Workload
from backend.doctor import doctor_report
from backend.engine import Bench
from backend.errors import InputError
from backend.export import script
from backend.files import check_folder, check_writable, read_prompt, write_json, write_text
from backend.fit import DEFAULT_CONTEXT, fit
from backend.fit_device import device_of
from backend.fit_table import text
from backend.models import DEFAULT_MODEL, catalogue, loadable, resolve
from backend.records import ArmRequest, Request
from backend.redact import redact
from backend.report import document, predicted_series, table
from backend.runs import Run
from backend.view import bytes_text

OK, BAD_INPUT, FAILED, STOPPED = 0, 2, 3, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of the console script. Returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # no text of a model can break an ASCII terminal
    try:
        options = _parser().parse_args(arguments)
        code = int(options.act(options))
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a reader that has gone away is no traceback
        return code
    except InputError as error:
        print(f"tokendyno: {redact(str(error))}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        print("tokendyno: stopped.", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return OK


class _Parser(argparse.ArgumentParser):
    def __init__(self, **more: Any) -> None:
        super().__init__(**more, allow_abbrev=False)  # else `run --a X` would quietly be `run --arm X`

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}. See {self.prog} --help.")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="tokendyno", description="A dynamometer for Transformers inference.")
    acts = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    arm_help = "axis=choice,axis=choice, or the name of a preset in presets/arms"

    compare = acts.add_parser("compare", help="run two arms on one prompt and compare them")
    compare.add_argument("--a", default="", metavar="ARM", help=f"arm A: {arm_help}; left out: all defaults")
    compare.add_argument("--b", default="", metavar="ARM", help="arm B, likewise")
    run = acts.add_parser("run", help="run one arm")
    run.add_argument("--arm", default="", metavar="ARM", help=arm_help)
    check = acts.add_parser("check", help="judge an arm without running it; exit code 2 if it would be refused")
    check.add_argument("--arm", default="", metavar="ARM", help=arm_help)
    export = acts.add_parser("export", help="write an arm as a standalone Python script that loads, generates, times")
    export.add_argument("--arm", default="", metavar="ARM", help=arm_help)
    export.add_argument("-o", "--output", default="-", metavar="FILE", help="write it to FILE; - is standard output")
    for sub in (compare, run, check, export):
        _add_workload(sub)
    for sub in (compare, run, check):
        _add_result(sub)
    compare.set_defaults(act=_compare)
    run.set_defaults(act=_run)
    check.set_defaults(act=_check)
    export.set_defaults(act=_export, repeats=1)

    fit_act = acts.add_parser("fit", help="what fits: quantizations and caches against a GPU's memory, and the floor")
    _add_model(fit_act)
    size = fit_act.add_mutually_exclusive_group()
    size.add_argument("--gpu", metavar="NAME", help="a GPU of the catalogue, such as RTX-4090; left out: this machine")
    size.add_argument("--vram", metavar="SIZE", help="memory of a GPU that is not in the catalogue, such as 24GiB")
    fit_act.add_argument("--context", type=int, metavar="N", help=f"tokens in the cache (default: {DEFAULT_CONTEXT:,})")
    fit_act.add_argument("--batch", type=int, default=1, metavar="N", help="sequences at once")
    fit_act.add_argument(
        "--gpus", type=int, default=1, metavar="N", help="GPUs that share the model, each like that one"
    )
    fit_act.set_defaults(act=_fit)

    models = acts.add_parser("models", help="list the catalogue")
    models.set_defaults(act=_models)
    doctor = acts.add_parser("doctor", help="the machine, the versions, what is usable and why not")
    doctor.add_argument(
        "--bandwidth", action="store_true", help="measure the memory's bandwidth and keep it for floors"
    )
    doctor.set_defaults(act=_doctor)
    for sub in (fit_act, models, doctor):
        _add_json(sub)
    return parser


def _add_json(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--json", metavar="FILE", help="write one JSON document to FILE; - is standard output alone")


def _add_model(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--model", default=DEFAULT_MODEL, help="catalogue name, Hub id[@revision], folder, .gguf file "
                     f"or random:NAME (default: {DEFAULT_MODEL})")  # fmt: skip
    sub.add_argument("--models-dir", type=Path, default=os.environ.get("TOKENDYNO_MODELS_DIR"), metavar="FOLDER",
                     help="folder in which plain model names are looked up too")  # fmt: skip


def _add_workload(sub: argparse.ArgumentParser) -> None:
    _add_model(sub)
    sub.add_argument("--prompt", help="text to continue")
    sub.add_argument("--prompt-file", type=Path, metavar="FILE", help="read the prompt from a UTF-8 file")
    sub.add_argument("--prompt-tokens", type=int, default=0, metavar="N",
                     help="cut or repeat the prompt to N tokens; without --prompt a synthetic one")  # fmt: skip
    sub.add_argument("--max-new-tokens", type=int, default=256, metavar="N")
    sub.add_argument("--batch-size", type=int, default=1, metavar="N")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (default)")
    sub.add_argument("--top-k", type=int, default=0, metavar="K",
                     help="with a temperature: sample from the K most likely tokens; 0: all (default)")  # fmt: skip
    sub.add_argument("--top-p", type=float, default=1.0, metavar="P",
                     help="with a temperature: sample from the most likely tokens that make up P; 1: all")  # fmt: skip
    sub.add_argument("--chat", action="store_true", help="put the prompt into the model's chat template")
    sub.add_argument("--reasoning-effort", default="", metavar="EFFORT",
                     help=f"with --chat, where the template has it (gpt-oss): {', '.join(EFFORTS)}")  # fmt: skip
    sub.add_argument("--ignore-eos", action="store_true", help="make all tokens, past every end of text")


def _add_result(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--repeats", type=int, default=1, metavar="N", help="run the arms N times in turn (A B A B ...)")
    sub.add_argument("--history", type=Path, metavar="FILE", help="keep the run in this history file as well")
    _add_json(sub)


def _workload(options: argparse.Namespace) -> Workload:
    prompt = options.prompt
    if prompt is not None and options.prompt_file is not None:
        raise InputError("Give --prompt or --prompt-file, not both.")
    if options.prompt_file is not None:
        prompt = read_prompt(options.prompt_file)
    if prompt is None:
        from backend.presets import prompts

        prompt = "" if options.prompt_tokens else prompts()[0].text
    return Workload(
        prompt=prompt, prompt_tokens=options.prompt_tokens, max_new_tokens=options.max_new_tokens,
        batch_size=options.batch_size, temperature=options.temperature, seed=options.seed, repeats=options.repeats,
        ignore_eos=options.ignore_eos, top_k=options.top_k, top_p=options.top_p, chat=options.chat,
        reasoning_effort=options.reasoning_effort,
    )  # fmt: skip


def _request(options: argparse.Namespace, arms: dict[str, str]) -> Request:
    workload = _workload(options)
    parsed = [ArmRequest(name, dict(parse_arm(options.model, text).choices)) for name, text in arms.items()]
    return Request(options.model, parsed, workload)


def _compare(options: argparse.Namespace) -> int:
    return _perform(options, _request(options, {"A": options.a, "B": options.b}))


def _run(options: argparse.Namespace) -> int:
    return _perform(options, _request(options, {"A": options.arm}))


def _perform(options: argparse.Namespace, request: Request) -> int:
    check_writable(options.json)
    check_folder(options.models_dir)
    bench = Bench(options.history, options.models_dir)
    for message in bench.messages:
        _say(f"note: {message}")
    checked = bench.check(request)
    bench.start()
    try:
        run_id = bench.submit(request)
        run = bench.runs.get(run_id)
        assert run is not None
        for arm in run.created.arms:
            for verdict in arm.verdicts:
                _say(f"{verdict.level} (arm {arm.name}, {verdict.axis}): {verdict.reason}")
        stopped = _follow(bench, run)
        result = document(run, predicted_series(run, options.models_dir, checked))
        if options.json != "-" and any(lane.t_s for lane in run.lanes.values()):
            print(table(run))
        write_json(options.json, result)
        if stopped:
            return STOPPED
        if run.status != "done":
            print(f"tokendyno: {run.message}", file=sys.stderr)
            return BAD_INPUT if run.bad_input else FAILED
        return OK
    finally:
        bench.close()


def _follow(bench: Bench, run: Run) -> bool:
    """Show progress until the run has ended. True if it was stopped with Ctrl-C."""
    stopped, last = False, ""
    while not run.ended:
        try:
            time.sleep(0.1)
            line = _progress_line(run)
            if line != last:
                _say(line, again=bool(last))
                last = line
        except KeyboardInterrupt:
            stopped = True
            bench.cancel(run.id)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return stopped


def _progress_line(run: Run) -> str:
    parts = []
    for name, lane in run.lanes.items():
        if lane.state == "working":
            phase = next(reversed(list(lane.phases.values())), None)
            made, most = len(lane.t_s), run.request.workload.max_new_tokens
            if not sys.stderr.isatty():
                made -= made % max(1, most // 4)  # a log needs no line for every step
            tokens = f" {made}/{most} {'tokens' if run.unit == 'token' else 'passes'}" if made else ""
            fraction = f" {phase.fraction:.0%}" if phase and phase.fraction and not tokens else ""
            parts.append(f"{name}: {phase.title if phase else 'wait'}{fraction}{tokens}")
        else:
            parts.append(f"{name}: {lane.state}")
    return " | ".join(parts)


def _say(text: str, again: bool = False) -> None:
    """To standard error; on a terminal a progress line replaces the one before, in a file only phases are kept."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}" if again else text, end="", file=sys.stderr, flush=True)
        if not again and not text.startswith(("A:", "B:")):
            print(file=sys.stderr)
    else:
        print(text, file=sys.stderr, flush=True)


def _check(options: argparse.Namespace) -> int:
    check_writable(options.json)
    check_folder(options.models_dir)
    request = _request(options, {"A": options.arm})
    bench = Bench(None, options.models_dir)
    checked = bench.check(request)["A"]
    loadable(resolve(options.model, options.models_dir))
    verdicts = [
        {"level": v.level, "axis": v.axis, "reason": v.reason, "fix": v.fix, "source": v.source, "becomes": v.becomes}
        for v in checked.verdicts
    ]
    result = {
        "schema": 1, "model": options.model, "runnable": not checked.blocked, "requested": dict(checked.requested),
        "planned": dict(checked.planned), "verdicts": verdicts,
        "predicted_bytes": {"weights": checked.memory.weights, "kv": checked.memory.kv, "total": checked.memory.total},
        "free_bytes": bench.machine().room_bytes,
    }  # fmt: skip
    if options.json != "-":
        for axis, choice in checked.requested.items():
            planned = checked.planned[axis]
            print(f"{axis:<12} {choice}" + ("" if planned == choice else f" -> {planned}"))
        predicted, free = (" ".join(bytes_text(size)) for size in (checked.memory.total, result["free_bytes"]))
        print(f"{'memory':<12} {predicted} predicted, {free} free")
        for verdict in checked.verdicts:
            fix = ", ".join(f"{axis}={choice}" for axis, choice in verdict.fix.items())
            source = f" Source: {verdict.source}" if verdict.source else ""
            print(f"{verdict.level}: {verdict.reason}" + (f" Fix: {fix}." if fix else "") + source)
        print("This arm would run." if not checked.blocked else "This arm would be refused.")
    write_json(options.json, result)
    return BAD_INPUT if checked.blocked else OK


def _export(options: argparse.Namespace) -> int:
    check_writable(options.output, "--output")
    check_folder(options.models_dir)
    request = _request(options, {"A": options.arm})
    checked = Bench(None, options.models_dir).check(request)["A"]
    checked.require_runnable()
    facts = resolve(options.model, options.models_dir)
    loadable(facts)
    write_text(options.output, script(checked, facts, request.workload), "--output")
    return OK


def _fit(options: argparse.Namespace) -> int:
    check_writable(options.json)
    check_folder(options.models_dir)
    device = device_of(hardware.machine(), options.gpu, options.vram)
    found = fit(options.model, device, options.context, options.batch, options.models_dir, gpus=options.gpus)
    if options.json != "-":
        print(text(found))
    write_json(options.json, found.as_json())
    return OK


def _models(options: argparse.Namespace) -> int:
    check_writable(options.json)
    entries = catalogue()
    if options.json != "-":
        for entry in entries:
            default = " (default)" if entry.name == DEFAULT_MODEL else ""
            print(f"{entry.name:<24} {entry.kind:<8} {entry.title}{default}")
            if entry.note:
                print(f"{'':<24} {entry.note}")
        print("\nAlso: a Hub id such as org/name@revision, a local folder, a .gguf file, or random:NAME "
              "(the architecture with random weights, no download).")  # fmt: skip
    names = [
        {
            "name": e.name, "title": e.title, "kind": e.kind, "repo": e.repo, "note": e.note,
            "default": e.name == DEFAULT_MODEL,
        }
        for e in entries
    ]  # fmt: skip
    write_json(options.json, {"schema": 1, "models": names})
    return OK


def _doctor(options: argparse.Namespace) -> int:
    check_writable(options.json)
    report = doctor_report(hardware.machine(), options.bandwidth)
    if options.json != "-":
        print(report.text())
    write_json(options.json, report.as_json())
    return FAILED if report.bandwidth_problem else OK


if __name__ == "__main__":
    sys.exit(main())
