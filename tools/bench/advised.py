"""Whether advice finds the best arm: a listed space is measured whole, once; advice is sought in it; then both run in
nine interleaved pairs. `python -m tools.bench.advised --model pocket --arms 64 --budget 20m --folder FOLDER`

Prints the best and the advised arm, how many runs each took (the last measurement counts two), and how much longer a
token of the advised one takes, with its interval. Both journals stay in the folder: the same command goes on.
"""

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

from tokendyno.backend.ablation.advise.course import Advice, heading_of_advice
from tokendyno.backend.ablation.advise.space import Space
from tokendyno.backend.ablation.advise.wishes import Limits, Question, parse_seconds, value_of
from tokendyno.backend.ablation.journal import Heading, Journal
from tokendyno.backend.ablation.sweep import Point
from tokendyno.backend.ablation.trials import TrialFailed, keep, trial_tasks
from tokendyno.backend.cli.commands import submitted
from tokendyno.backend.cli.progress import follow
from tokendyno.backend.cli.trials import watch
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.quality import Quality
from tokendyno.backend.quality.texts import shipped_texts

WORK = Workload(prompt_tokens=128, max_new_tokens=64, ignore_eos=True)


def shortened(space: Space, most: int) -> None:
    """Keep the first arms that compile nothing: a compiler takes minutes of a CPU."""
    names = [name for name, arm in space.arms.items() if not arm.compiles][:most]
    space.arms = {name: space.arms[name] for name in names}


def measured(bench: Bench, model: str, space: Space, folder: Path) -> dict[str, float]:
    """The logarithm of a token's time of every arm that runs, from one trial each."""
    arms = [Point({}, dict(arm.choices), WORK) for arm in space.arms.values()]
    journal = Journal(folder / "whole.jsonl", Heading(model, {}, [], ["whole"], WORK).begun(bench.machine()))
    for task in trial_tasks(model, arms, 1, journal):
        run = submitted(bench, task.request)
        follow(bench, run)
        try:
            keep(task, run, journal)
        except TrialFailed as error:
            print(f"failed: {error}"[:160])
    journal.close()
    values = {trial.arm: value_of(trial, "latency") for trial in journal.trials.values() if not trial.doubtful}
    return {name: value for name, value in values.items() if value is not None}


def main() -> None:
    """Measure, advise, compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="pocket")
    parser.add_argument("--models-dir", type=Path)
    parser.add_argument("--arms", type=int, default=64)
    parser.add_argument("--budget", default="20m")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    bench = open_bench(None, options.models_dir)
    question = Question(options.model, WORK, "latency", Limits(any_quality=True))
    journal = Journal(options.folder / "advice.jsonl", heading_of_advice(question).begun(bench.machine()))
    advice = Advice(bench, question, journal, Quality(shipped_texts()))
    shortened(advice.steps.space, options.arms)
    advice.steps.builder.widen = lambda best: 0  # type: ignore[method-assign]
    bench.start()
    values = measured(bench, options.model, advice.steps.space, options.folder)
    advice.perform(parse_seconds(options.budget), partial(watch, bench))
    best, advised = min(values, key=values.__getitem__), advice.steps.standing().leader or ""
    print(
        f"best of {len(values)}: {best or 'as it comes'}; advised after {journal.runs} runs in "
        f"{advice.steps.spent_s:.0f} s: {advised or 'as it comes'}"
    )
    if best != advised:
        pair = {"A": advised, "B": best}
        arms = [ArmRequest(name, dict(advice.steps.space.arms[arm].choices)) for name, arm in pair.items()]
        run = bench.wait(bench.submit(Request(options.model, arms, replace(WORK, repeats=9))))
        comparison = run.snapshot().comparison
        if comparison is not None and comparison.low is not None and comparison.high is not None:
            more, low, high = (100 * (ratio - 1) for ratio in (comparison.ratio, comparison.low, comparison.high))
            print(f"a token of the advised arm takes {more:.1f}% more than the best's ({low:.1f} to {high:.1f}%)")
    journal.close()
    bench.close()


if __name__ == "__main__":
    main()
