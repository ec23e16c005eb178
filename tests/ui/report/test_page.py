"""The report holds the whole run, small enough to be sent, and no text of the run is markup in it."""

import base64
import gzip
import html
import json
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.backend.runs.test_quality import A, B
from tests.backend.runs.test_quality import run_of as read_by
from tests.browser.stored_runs import EVIL, evil
from tests.support.ablations import stored, stored_sweep
from tests.support.runs import arm_records, created, ended
from tokendyno.backend.cli.commands import comparison_of
from tokendyno.backend.cli.main import main
from tokendyno.backend.cli.options import request_of
from tokendyno.backend.cli.parser import make_parser
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.recordings.format import write_recording
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.quality import PairReading, whole_reading
from tokendyno.backend.runs.records import Created
from tokendyno.backend.runs.run import MAX_TOKENS_PER_PULL, folded
from tokendyno.backend.runs.store import Store
from tokendyno.backend.views.document import document
from tokendyno.backend.views.share import cell_text, command_of, series_csv
from tokendyno.ui.report.page import report, whole


def held(text: str) -> Any:
    """The run that lies in a report."""
    match = re.search(r"const REPORT = (\{.*\});\n", text)
    assert match is not None
    return json.loads(gzip.decompress(base64.b64decode(json.loads(match[1])["reply"])))


def test_a_report_holds_every_token_of_a_long_run_in_one_answer() -> None:
    tokens = 2 * MAX_TOKENS_PER_PULL + 7
    run = folded([created(), *arm_records("A", tokens), *arm_records("B", 5), ended()])
    text = report(run, {"A": "print(1)", "B": "# none"})
    assert len(text.encode()) < 6_000_000
    reply = held(text)
    assert [len(lane["t"]) for lane in reply["lanes"]] == [tokens, 5] and reply["ended"]
    assert reply["lanes"][0]["lat"] == run.arms["A"].latency_s and reply["lanes"][0]["text"] == run.arms["A"].text
    assert msgspec.to_builtins(whole(run))["head"]["arms"][0]["ledger"] == reply["head"]["arms"][0]["ledger"] != []


def test_no_text_of_a_run_is_markup_in_its_report() -> None:
    text = report(folded(evil()), {EVIL: EVIL})
    for sign in ("<img src=x", "<script>alert", "<svg/onload", "<iframe", "<a href='java"):
        assert sign not in text, sign
    assert text.count("</script>") == 2


def test_a_report_has_the_prompt_the_command_and_what_was_read_of_the_arms_quality() -> None:
    run = folded([created(), *arm_records("A", 5), *arm_records("B", 4), ended()])
    text = report(run, {})
    assert "<h2>Prompt</h2><pre>Once upon a time</pre>" in text
    command = re.search("<h2>Command</h2><pre>(.*?)</pre>", text)
    assert command is not None and html.unescape(command[1]) == command_of(run.request)
    unread = held(text)["head"]["verdict"]
    assert unread["gate"] == "Quality not read: the command tokendyno quality reads it"

    class Others(RunLog):
        def reading(self, of: Created) -> PairReading:
            reading = read_by(A=A, B=B)
            return PairReading(reading.created, whole_reading(reading.snapshot()), swapped=False)

    read = report(run, {}, Others(Store(None)))
    assert "<h2>Quality</h2><pre>Quality over " in read and "<title>Pocket" in read
    verdict = held(read)["head"]["verdict"]
    assert verdict["gate"].startswith("Quality over ") and not verdict["gate_run"], "no link leads out of a file"


@pytest.mark.parametrize(
    ("arms", "work"),
    [
        ({"A": {"dtype": "float32"}, "B": {}}, Workload('- it\'s "so"\n$HOME', batch_size=2, repeats=5)),
        ({"A": {}}, Workload(prompt_tokens=64, max_new_tokens=9, temperature=0.5, top_k=3, top_p=0.9, seed=7)),
        (
            {"A": {}, "B": {"loop": "own", "cache": "static"}},
            Workload("x", chat=True, system="Be brief.", reasoning_effort="low", ignore_eos=True),
        ),
    ],
)
def test_the_command_of_a_run_asks_for_the_same_run(arms: dict[str, dict[str, str]], work: Workload) -> None:
    run_request = Request("gpt2", [ArmRequest(name, choices) for name, choices in arms.items()], work)
    options = make_parser().parse_args(shlex.split(command_of(run_request))[1:])
    assert (request_of(options, {"A": options.arm}) if len(arms) == 1 else comparison_of(options)) == run_request


def test_the_command_of_pairs_until_they_decide_says_no_number_of_them() -> None:
    arms = [ArmRequest("A", {}), ArmRequest("B", {"loop": "own"})]
    for until_s, said in ((60.0, ""), (20.0, "--seconds 20")):
        line = command_of(Request("gpt2", arms, Workload("x", repeats=9), until_s=until_s))
        assert "--repeats" not in line and said in line and ("--seconds" in line) == bool(said)
    assert "--price-per-hour 2.5" in command_of(Request("gpt2", arms, Workload("x"), until_s=60, price_per_hour=2.5))


def test_csv_has_a_line_for_each_value_and_no_formula() -> None:
    run = folded([created(), *arm_records("A", 5), *arm_records("B", 5), ended()])
    lines = series_csv(run).splitlines()
    assert len(lines) == 1 + 2 * (5 + 2) and lines[1].startswith("A,token,0,0.1,0.1,")
    assert all(cell_text(text) == f"'{text}" for text in ("=1+1", "+x", "-x", "@x", "\tx")) and cell_text("A") == "A"
    assert [len(arm.kv_bytes_predicted.full) for arm in document(run).arms] == [5, 5]


def test_the_command_writes_what_was_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page, series, document = (str(tmp_path / name) for name in ("run.dyno", "run.html", "run.csv", "run.json"))
    write_recording(Path(file), [created(), *arm_records("A", 5), *arm_records("B", 5), ended()])
    assert main(["report", file, "--html", page, "--csv", series, "--json", document]) == 0
    assert held(Path(page).read_text())["run"] == "run1" and "<details><summary>Arm A" in Path(page).read_text()
    assert json.loads(Path(document).read_text())["arms"][1]["kv_bytes_predicted"]["full"]
    assert Path(series).read_text().startswith("arm,series")
    capsys.readouterr()
    assert main(["report", file]) == 0 and "Time per token" in capsys.readouterr().out
    assert main(["report", file, "--html", str(tmp_path)]) == 2


def test_an_ablation_and_a_sweep_are_files_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(tmp_path)
    stored(tmp_path, "stored-stair", kinds=["stair"])
    stored_sweep(tmp_path)
    page, history = tmp_path / "page.html", ["--history", str(tmp_path / "history.sqlite")]
    assert main(["report", "stored-worth", "--html", str(page), *history]) == 0
    groups = held(page.read_text())["groups"]
    assert [group["title"] for group in groups] == ["One after the other", "Each alone", "All but one"]
    assert main(["report", "stored-stair", "--html", str(page), *history]) == 0
    (stair,) = held(page.read_text())["groups"]
    assert [row["title"] for row in stair["rows"]] == ["Arm A", "Dtype: float32", "KV cache: static"], "no false arm B"
    journal = tmp_path / "ablations" / "stored-sweep.jsonl"
    assert main(["report", str(journal), "--html", str(page)]) == 0
    assert len(held(page.read_text())["table"]) == 7
    capsys.readouterr()
    assert main(["report", str(journal)]) == 2 and "--html FILE only" in capsys.readouterr().err
