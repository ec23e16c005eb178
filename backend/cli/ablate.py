"""`tokendyno ablate`: what each of several changes is worth."""

import argparse
import sys
from collections.abc import Callable

from backend import hardware
from backend.ablation.journal import Heading, Journal
from backend.ablation.result import AblationDocument, results
from backend.ablation.steps import KINDS, plan_steps
from backend.ablation.trials import Task, admit, reading_tasks, trial_tasks
from backend.cli.ablate_table import ablation_table
from backend.cli.commands import workload
from backend.cli.files import write_json
from backend.cli.progress import say
from backend.cli.trials import (
    add_quality_option,
    add_trial_options,
    bench_of,
    check_options,
    check_readable,
    given_texts,
    measured,
    trial_arm,
)
from backend.errors import InputError
from backend.models import resolve
from backend.terminal import screen_of


def ablate(options: argparse.Namespace) -> int:
    """Run every arm once a round, and say what each change is worth."""
    check_options(options)
    work = workload(options)
    base = trial_arm(options, options.base, work)
    changes = [_change(text) for text in options.add]
    kinds = [*(options.steps or KINDS)]
    steps = plan_steps(options.model, base, changes, kinds)
    with bench_of(options) as bench:
        check_readable(bench, options)
        admitted = admit(bench, options.model, steps, work)
        for (level, axis, reason), arm in admitted.said.items():
            say(f"{level} ({arm or 'base'}, {axis}): {reason}")
        machine = bench.machine()
        heading = Heading(options.model, base, changes, kinds, work).begun(machine)
        choices = {step.arm: step.choices for step in steps if step.arm not in admitted.refused}

        def tasks(journal: Journal) -> list[Task]:
            found = trial_tasks(options.model, [*choices], choices, work, options.rounds, journal)
            if options.quality:
                found += reading_tasks(options.model, [*choices], choices, given_texts(), journal)
            return found

        found = measured(bench, options, heading, tasks, together=True)
    steps_found = results(steps, admitted, found.journal, greedy=work.temperature == 0)
    complete = all(step.refused or step.trials == options.rounds for step in steps_found)
    facts = resolve(options.model, options.models_dir)
    document = AblationDocument(
        "ablation", 3, options.model, facts.label, machine.describe(), hardware.versions(), work, options.rounds,
        complete, steps_found,
    )  # fmt: skip
    if options.json != "-":
        print(ablation_table(document, screen_of(sys.stdout, options.color)))
    write_json(options.json, document)
    return found.exit_code()


def _change(text: str) -> tuple[str, str]:
    axis, sign, choice = (part.strip() for part in text.partition("="))
    if not (axis and sign and choice) or "," in text:
        raise InputError(f"{text!r} is no change. Write one axis=choice after --add, or several with spaces between.")
    return axis, choice


def add_ablate(add: Callable[..., argparse.ArgumentParser], arm_help: str) -> argparse.ArgumentParser:
    """The command's own options."""
    sub = add("ablate", ablate, "what each of several changes is worth: alone, left out, and one after the other")
    sub.add_argument("--base", default="", metavar="ARM", help=f"where it begins: {arm_help}")
    sub.add_argument(
        "--add", nargs="+", action="extend", required=True, metavar="AXIS=CHOICE", help="the changes, in order"
    )
    sub.add_argument(
        "--steps", nargs="+", choices=KINDS, metavar="KIND",
        help=f"which steps: {', '.join(KINDS)} (default: all of them)",
    )  # fmt: skip
    add_trial_options(sub, "arm")
    add_quality_option(sub, "each arm with the base")
    return sub
