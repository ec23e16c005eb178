"""Arms on the command line: every command grants a bundle alike."""

import shlex

import pytest

from tokendyno.backend.cli import batch, quality
from tokendyno.backend.cli.commands import comparison_of
from tokendyno.backend.cli.options import written_arms
from tokendyno.backend.cli.parser import make_parser
from tokendyno.backend.cli.trials import trial_arm
from tokendyno.backend.config import Workload

ASKED = "--model pocket --a lowest-latency --b dtype=float32"


@pytest.mark.parametrize("command", ["compare", "quality", "batch"])
def test_a_bundle_comes_to_what_can_run_here_in_every_command(command: str) -> None:
    options = make_parser().parse_args(shlex.split(f"{command} {ASKED}"))
    match command:
        case "compare":
            request = comparison_of(options)
        case "quality":
            request = quality.quality_of(options)
        case _:
            request = batch.batch_of(options)
    first, second = request.arms
    assert first.preset == "lowest-latency" and first.choices.get("loop") == "own"
    assert "cuda_graphs" not in first.choices, "there is no GPU"
    assert second.choices == {"dtype": "float32"} and not second.preset


@pytest.mark.parametrize("line", ["ablate --base lowest-latency --add cache=static", "sweep --over batch_size=1,2"])
def test_trials_begin_with_what_is_granted_and_say_what_gave_way(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = make_parser().parse_args(shlex.split(line))
    work = Workload("Once upon a time")
    (granted,) = written_arms(options, {"A": "lowest-latency"}, work)
    assert trial_arm(options, "lowest-latency", work) == granted.choices
    assert "note (cuda_graphs): Of the preset lowest-latency, cuda_graphs=manual" in capsys.readouterr().err
    assert trial_arm(options, "cache=static", work) == {"cache": "static"} and not capsys.readouterr().err
