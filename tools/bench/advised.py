"""Whether advice finds the best arm: a listed space is measured whole, once; advice is sought in it; then both run in
nine interleaved pairs. `python -m tools.bench.advised --model pocket --arms 64 --budget 20m --folder FOLDER`

Prints the best and the advised arm, how many runs each took (the last measurement counts two), and how much longer a
token of the advised one takes, with its interval. Both journals stay in the folder: the same command goes on.
"""

import argparse
from pathlib import Path

from tokendyno.backend.ablation.advise.course import Advice, heading_of_advice
from tokendyno.backend.ablation.advise.space import Space
from tokendyno.backend.ablation.advise.wishes import Limits, Question, parse_seconds, value_of
from tokendyno.backend.ablation.journal import Heading, Journal
from tokendyno.backend.ablation.sweep import Point
from tokendyno.backend.ablation.trials import TrialFailed, keep, trial_tasks
from tokendyno.backend.cli.progress import follow
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.quality import Quality
from tokendyno.backend.quality.texts import shipped_texts
from tokendyno.backend.runs.run import Run

WORK = Workload(prompt_tokens=128, max_new_tokens=64, ignore_eos=True)


def shortened(space: Space, most: int) -> None:
    """Keep the first arms that compile nothing: a compiler takes minutes of a CPU."""
    kept = [name for name, one in space.arms.items() if not one.compiles][:most]
    space.arms = {name: space.arms[name] for name in kept}


def whole(bench: Bench, model: str, space: Space, folder: Path) -> dict[str, float]:
    """The logarithm of a token's time of every arm that runs, from one trial each."""
    arms = [Point({}, dict(one.choices), WORK) for one in space.arms.values()]
    journal = Journal(folder / "whole.jsonl", Heading(model, {}, [], ["whole"], WORK).begun(bench.machine()))
    for task in trial_tasks(model, arms, 1, journal):
        run = bench.runs.get(bench.submit(task.request))
        assert run is not None
        follow(bench, run)
        try:
            keep(task, run, journal)
        except TrialFailed as error:
            print(f"failed: {error}"[:160])
    journal.close()
    found = {trial.arm: value_of(trial, "latency") for trial in journal.trials.values() if not trial.doubtful}
    return {name: value for name, value in found.items() if value is not None}


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
    asked = Question(options.model, WORK, "latency", Limits(any_quality=True))
    journal = Journal(options.folder / "advice.jsonl", heading_of_advice(asked).begun(bench.machine()))
    advice = Advice(bench, asked, journal, Quality(shipped_texts()))
    shortened(advice.steps.space, options.arms)
    advice.steps.builder.widen = lambda best: 0  # type: ignore[method-assign]
    bench.start()
    every = whole(bench, options.model, advice.steps.space, options.folder)

    def watch(run: Run, what: str) -> None:
        print(what)
        follow(bench, run)

    advice.perform(parse_seconds(options.budget), watch)
    best, advised = min(every, key=lambda name: every[name]), advice.steps.standing().leader or ""
    print(
        f"best of {len(every)}: {best or 'as it comes'}; advised after "
        f"{advice.steps.runs + 2 * (journal.confirmed is not None)} runs in "
        f"{advice.steps.spent_s:.0f} s: {advised or 'as it comes'}"
    )
    if best != advised:
        arms = [ArmRequest(x, dict(advice.steps.space.arms[y].choices)) for x, y in (("A", advised), ("B", best))]
        work = Workload(prompt_tokens=128, max_new_tokens=64, ignore_eos=True, repeats=9)
        found = bench.wait(bench.submit(Request(options.model, arms, work))).comparison()
        if found is not None and found.low is not None and found.high is not None:
            print(
                f"a token of the advised arm takes {100 * (found.ratio - 1):.1f}% more than the best's "
                f"({100 * (found.low - 1):.1f} to {100 * (found.high - 1):.1f}%)"
            )
    journal.close()
    bench.close()


if __name__ == "__main__":
    main()
