"""`tokendyno sweep`: what is shown of points whose figures are known, and what is refused."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from tests.support.command_line import text_of
from tokendyno.backend.ablation.journal import Cost, Heading, Journal, Trial
from tokendyno.backend.ablation.sweep import SweepDocument, plan_points, point_results
from tokendyno.backend.cli import sweep as command
from tokendyno.backend.cli.main import main
from tokendyno.backend.cli.parser import make_parser
from tokendyno.backend.cli.sweep import csv_text, sweep_blocks
from tokendyno.backend.cli.trials import Ended
from tokendyno.backend.config import Workload

WORK = Workload(prompt_tokens=16, max_new_tokens=4)
OVER = {"dtype": ["bfloat16", "float32"], "batch_size": ["1", "4"]}


def document(read: bool) -> SweepDocument:
    """Float32 takes half the time; its texts were read or not."""
    points = plan_points("pocket", {}, OVER, WORK)
    journal = Journal(None, Heading("pocket", {}, [("dtype", "bfloat16,float32")], ["sweep"], WORK, "cpu", {}))
    for point in points:
        step_s = 0.1 if "dtype=float32" in point.name else 0.2
        journal.add(Trial(point.name, 0, [0.5, step_s, step_s], 0.5, 1 << 20, 5, [1]))
    if read:
        journal.add(Cost("dtype=float32", 0.0125, 0.98, 1.01, "small"))
    results = point_results(points, {}, journal)
    return SweepDocument(3, "pocket", "Pocket", {}, {}, {}, OVER, WORK, 1, True, results)


def test_quality_belongs_to_every_point_with_the_choices_that_were_read() -> None:
    swept = document(read=True)
    assert [point.quality.kl_nats if point.quality else None for point in swept.points] == [None, None, 0.0125, 0.0125]
    rows = list(csv.DictReader(csv_text(swept).splitlines()))
    assert [row["kl_nats"] for row in rows] == ["", "", "0.0125", "0.0125"] and rows[2]["top1_agreement"] == "0.98"
    table = text_of(sweep_blocks(swept))
    assert "KL divergence" in table and table.count("0.0125 nats") == 2
    assert table.startswith("Each ran once, so no difference can be told from noise: three rounds give intervals.")
    assert "KL divergence" not in text_of(sweep_blocks(document(read=False)))


class NoReader(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        if text:
            raise BrokenPipeError
        return 0


def test_the_files_are_written_where_nobody_takes_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"--csv": tmp_path / "s.csv", "--json": tmp_path / "s.json"}
    options = make_parser("sweep").parse_args(
        ["sweep", "--over", "batch_size=1,4", *(str(part) for pair in files.items() for part in pair)]
    )
    monkeypatch.setattr(command, "swept", lambda _: (document(read=False), Ended(0)))
    monkeypatch.setattr(sys, "stdout", NoReader())
    with pytest.raises(BrokenPipeError):
        command.sweep(options)
    assert files["--csv"].read_text() == csv_text(document(read=False))
    assert len(json.loads(files["--json"].read_text())["points"]) == 4


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--over", "batch_size"], "nothing to sweep over"),
        (["--over", "batch_size=1,2", "--quality"], "only sizes vary here"),
        (
            ["--over", "cache=offloaded,offloaded_static"],
            "point can run here. Offloading moves keys and values between",
        ),
        (
            ["--over", "attention=flash_attention_2,flash_attention_3", "batch_size=1,2"],
            "Attention: FlashAttention 2, Batch size: 1; Attention: FlashAttention 2, Batch size: 2: FlashAttention 2 "
            "runs on NVIDIA GPUs only. Attention: FlashAttention 3",
        ),
        (
            ["--arm", "attention=flash_attention_2", "--over", "batch_size=1,2"],
            "No point can run here. FlashAttention 2 runs on NVIDIA GPUs only.\n",
        ),
        (["--over", "batch_size=1,2", "--csv", "f", "--journal", "f"], "--csv and --journal name the same file"),
        (["--over", "requests=4,8", "--max-new-tokens", "8"], "Many requests have prompts of their own"),
        (["--over", "requests=4,8", "dtype=float32,bfloat16", "--quality"], "Quality is read with one prompt"),
        (["--over", "requests=4,8", "--traffic", "smal"], "Did you mean"),
        (["--over", "batch_size=1,2", "--over", "batch_size=4,8"], "--over names batch_size twice"),
        (["--over", "max_new_tokens=-5,8"], "New tokens is -5; it must be a whole number from 1 to 32,768."),
        (
            ["--over", "cache=static"],
            "KV cache needs at least two different values, such as dynamic,unwindowed",
        ),
    ],
)
def test_bad_input_is_a_sentence(options: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--no-history", *options]) == 2
    assert part in capsys.readouterr().err
