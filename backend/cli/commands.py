"""What each command does. Results go to standard output, progress and notes to standard error."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from backend import hardware
from backend.arms.check import Checked
from backend.arms.presets import prompts
from backend.cli.arms import written_arms
from backend.cli.check_text import check_text
from backend.cli.doctor import doctor_report
from backend.cli.doctor_text import doctor_text
from backend.cli.documents import ModelsDocument, ShardingDocument
from backend.cli.exit_codes import BAD_INPUT, FAILED, OK, STOPPED
from backend.cli.files import check_folder, check_writable, read_prompt, write_json, write_text
from backend.cli.fit_table import fit_text, sharding_text
from backend.cli.history_option import history_of
from backend.cli.models_text import model_entries, models_text
from backend.cli.nodes import machines_of
from backend.cli.progress import close, follow, say, say_notes
from backend.cli.run_table import table
from backend.cli.stored import find_records
from backend.config import Request, Workload
from backend.errors import InputError
from backend.executors import open_bench
from backend.executors.several_machines import Machines
from backend.export.script import script
from backend.fit import table as fit_table
from backend.fit.device import device_of
from backend.fit.sharding import sharding
from backend.models import check_loadable, resolve
from backend.recordings.files import ENDING, write_recording
from backend.runs.gate import gate_of
from backend.runs.log import RunLog
from backend.runs.run import Run
from backend.terminal import Screen, screen_of
from backend.views.check_document import check_document
from backend.views.document import document, predicted_series
from backend.views.gate import gate_document


class CommandFailed(Exception):
    """A command could not do what was asked: one sentence, and the exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


def _screen(options: argparse.Namespace) -> Screen:
    return screen_of(sys.stdout, options.color)


# --- runs -----------------------------------------------------------------------------------------


def compare(options: argparse.Namespace) -> int:
    """Run two arms."""
    return _perform(options, _request(options, {"A": options.a, "B": options.b}))


def run(options: argparse.Namespace) -> int:
    """Run one arm."""
    return _perform(options, _request(options, {"A": options.arm}), machines_of(options))


def _perform(options: argparse.Namespace, request: Request, machines: Machines | None = None) -> int:
    def result(current: Run, checked: dict[str, Checked], runs: RunLog) -> msgspec.Struct:
        gate = gate_document(gate_of(current.snapshot(), runs.reading)) if current.ended else None
        return document(current, predicted_series(current, options.models_dir, checked), gate)

    def shown(current: Run, runs: RunLog) -> str:
        measured = any(arm.t_s for arm in current.arms.values())
        return table(current, _screen(options), options.all, runs.reading) if measured else ""

    return perform(options, request, result, shown, machines)


def perform(
    options: argparse.Namespace,
    request: Request,
    result: Callable[[Run, dict[str, Checked], RunLog], msgspec.Struct],
    shown: Callable[[Run, RunLog], str],
    machines: Machines | None = None,
) -> int:
    """Carry a request out and report on it; returns the exit code.

    result    the JSON document, of the run and of each arm as it was checked, beside all other runs
    shown     what is printed of the run, "" where nothing was measured
    machines  those that share the model
    """
    check_writable(options.json)
    check_folder(options.models_dir)
    bench = open_bench(history_of(options), options.models_dir, machines=machines)
    try:
        say_notes(bench)
        checked = bench.check(request)
        for line in machines.torchrun_lines(options.model, options.models_dir) if machines is not None else ():
            say("On another machine, type:")
            print(f"  {line}", file=sys.stderr, flush=True)  # whole, to be copied
        bench.start()
        current = bench.runs.get(bench.submit(request))
        assert current is not None
        for arm in current.created.arms:
            for verdict in arm.verdicts:
                say(f"{verdict.level} (arm {arm.name}, {verdict.axis}): {verdict.reason}")
        stopped = follow(bench, current)
        found = result(current, checked, bench.runs)
        if options.json != "-" and (text := shown(current, bench.runs)):
            print(text)
        write_json(options.json, found)
        if not stopped and current.status != "done":
            raise CommandFailed(current.message, BAD_INPUT if current.bad_input else FAILED)
        return STOPPED if stopped else OK
    finally:
        close(bench)


def _request(options: argparse.Namespace, arms: dict[str, str]) -> Request:
    work = workload(options)
    return Request(options.model, written_arms(options, arms, work), work)


def workload(options: argparse.Namespace) -> Workload:
    """The prompt and how it is continued, as the options say."""
    prompt = options.prompt
    if prompt is not None and options.prompt_file is not None:
        raise InputError("Give --prompt or --prompt-file, not both.")
    if options.prompt_file is not None:
        prompt = read_prompt(options.prompt_file)
    if prompt is None:
        prompt = "" if options.prompt_tokens else prompts()[0].text
    return Workload(
        prompt=prompt, prompt_tokens=options.prompt_tokens, max_new_tokens=options.max_new_tokens,
        batch_size=options.batch_size, temperature=options.temperature, seed=options.seed, repeats=options.repeats,
        ignore_eos=options.ignore_eos, top_k=options.top_k, top_p=options.top_p, chat=options.chat,
        reasoning_effort=options.reasoning, system=options.system,
    )  # fmt: skip


# --- an arm without a run -------------------------------------------------------------------------


def check(options: argparse.Namespace) -> int:
    """Check an arm against the rules and the free memory."""
    check_writable(options.json)
    check_folder(options.models_dir)
    request = _request(options, {"A": options.arm})
    bench = open_bench(None, options.models_dir)
    lacking = bench.obstacle(resolve(options.model, options.models_dir))
    checked = bench.check(request)["A"].refused(lacking)
    found = check_document(options.model, checked)
    if options.json != "-":
        print(check_text(checked, _screen(options), options.all))
    write_json(options.json, found)
    return OK if found.runnable else BAD_INPUT


def export(options: argparse.Namespace) -> int:
    """Write an arm as a standalone script, or a run as one file."""
    if options.run:
        return _export_run(options)
    check_writable(options.output, "--output")
    check_folder(options.models_dir)
    request = _request(options, {"A": options.arm})
    checked = open_bench(None, options.models_dir).check(request)["A"]
    checked.require_runnable()
    facts = resolve(options.model, options.models_dir)
    check_loadable(facts)
    write_text(options.output, script(checked, facts, request.workload), "--output")
    return OK


def _export_run(options: argparse.Namespace) -> int:
    if options.output == "-":
        raise InputError(f"A run is exported to a file: name it, such as -o {options.run[:12]}{ENDING}.")
    size = write_recording(Path(options.output).expanduser(), find_records(options.run, options.history))
    say(f"Wrote {options.output}: {size:,} bytes.")
    return OK


# --- facts ----------------------------------------------------------------------------------------


def fit(options: argparse.Namespace) -> int:
    """Which quantizations and caches fit."""
    check_writable(options.json)
    check_folder(options.models_dir)
    if options.sharding:
        return _sharding(options)
    device = device_of(hardware.detect(), options.gpu, options.vram)
    found = fit_table.fit(options.model, device, options.context, options.batch, options.models_dir, gpus=options.gpus)
    if options.json != "-":
        print(fit_text(found, _screen(options), options.all))
    write_json(options.json, found.as_json())
    return OK


def _sharding(options: argparse.Namespace) -> int:
    name = options.model.removeprefix("random:")
    split = sharding(resolve(f"random:{name}", options.models_dir), options.sharding)
    if options.json != "-":
        print(sharding_text(split, _screen(options)))
    write_json(options.json, ShardingDocument(split.facts.model, split.choice, split.rank_bytes, list(split.rows)))
    return OK


def models(options: argparse.Namespace) -> int:
    """List the catalogue."""
    check_writable(options.json)
    entries = model_entries()
    if options.json != "-":
        print(models_text(entries, _screen(options)))
    write_json(options.json, ModelsDocument(entries))
    return OK


def doctor(options: argparse.Namespace) -> int:
    """Report on this machine."""
    check_writable(options.json)
    report = doctor_report(hardware.detect(), options.bandwidth)
    if options.json != "-":
        print(doctor_text(report, _screen(options), options.verbose))
    write_json(options.json, report.document())
    return FAILED if report.bandwidth_problem else OK
