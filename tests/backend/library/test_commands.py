"""The commands as functions: what they return is what the command line writes, and bad arguments are one sentence."""

import asyncio
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

import tokendyno as td
from tokendyno.backend.cli.main import main
from tokendyno.backend.errors import InputError
from tokendyno.backend.library import commands
from tokendyno.backend.library.results import RunResult
from tokendyno.backend.recordings.recorded_runs import shipped_records
from tokendyno.backend.runs.run import folded
from tokendyno.backend.views.document import document

QUICK: dict[str, Any] = {"max_new_tokens": 6, "no_proof": True, "no_history": True}


def drawn(result: Any) -> Any:
    """The first trace of the figure, which a notebook draws."""
    figure = result.figure()
    assert figure.layout.title.text == result.verdict and "plotly" in figure.to_html(include_plotlyjs=False)
    return figure.data[0]


def test_a_run_is_a_document_a_table_and_a_figure(capsys: pytest.CaptureFixture[str]) -> None:
    result = td.run("pocket", "cache=static,loop=own", prompt="Once", **QUICK)
    printed = capsys.readouterr()
    assert printed.out == "" and "A: done" in printed.err and "\x1b" not in printed.err
    arm = result.arms["A"]
    assert len(arm.token_ids) == 6 and result.verdict.startswith("A generates ")
    assert json.loads(result.to_json())["arms"][0]["token_ids"] == arm.token_ids
    table = result.to_pandas()
    assert list(table["latency_s"]) == arm.latency_s and set(table["arm"]) == {"A"}
    assert list(drawn(result).y) == [1e3 * latency_s for latency_s in arm.latency_s[1:]]


def test_a_verdict_is_the_sentence_of_the_page() -> None:
    run = folded(shipped_records("recorded-half-bytes"))
    result = RunResult(document(run), run.snapshot())
    table, arm = result.to_pandas(), result.arms["B"]
    assert len(arm.repeats) > 1 and len(table[table["arm"] == "B"]) == sum(len(one.latency_s) for one in arm.repeats)
    assert list(table[(table["arm"] == "B") & (table["repeat"] == 1)]["latency_s"]) == arm.repeats[1].latency_s
    assert result.verdict.startswith("float32 ran 1.5\u00d7 as fast as bfloat16 (1.3 to 1.7)")


@pytest.mark.slow
def test_two_arms_are_compared_in_silence_and_inside_a_running_loop(capsys: pytest.CaptureFixture[str]) -> None:
    async def compared() -> Any:
        return td.compare("pocket", "dtype=float32", ["dtype=bfloat16"], repeats=2, progress=False, **QUICK)

    with ThreadPoolExecutor(1) as another:  # a browser test before this one may have left a loop in this thread
        result = another.submit(lambda: asyncio.run(compared())).result()
    assert capsys.readouterr() == ("", "")
    assert result.document.comparison is not None and list(result.arms) == ["A", "B"]
    assert [trace.name for trace in result.figure().data] == ["A", "B"]


@pytest.mark.full
def test_texts_are_read_and_points_are_swept(tmp_path: Path) -> None:
    text = tmp_path / "mine.txt"
    text.write_text("It was a bright cold day in April, and the clocks were striking thirteen. " * 8)
    read = td.quality(
        "pocket", "dtype=float32", "dtype=bfloat16", text=[text], only_given=True, no_history=True, progress=False
    )
    assert [text.name for text in read.document.texts] == ["mine"] and read.verdict == read.document.sentence
    assert len(read.to_pandas()) == 2 and list(drawn(read).x) == ["mine"]
    swept = td.sweep(
        "pocket",
        over={"batch_size": [1, 2]},
        rounds=1,
        prompt_tokens=8,
        max_new_tokens=4,
        no_history=True,
        progress=False,
    )
    assert "three rounds" in swept.verdict
    assert list(swept.to_pandas()["batch_size"]) == ["1", "2"] and list(drawn(swept).x) == [
        "batch_size=1",
        "batch_size=2",
    ]


def test_what_fits_and_what_would_run_are_what_the_commands_write(capsys: pytest.CaptureFixture[str]) -> None:
    fit = td.fit("Llama-3-8B", gpu="RTX-4090", context=4096, progress=False)
    assert main(["fit", "--model", "Llama-3-8B", "--gpu", "RTX-4090", "--context", "4096", "--json", "-"]) == 0
    ours, theirs = json.loads(fit.to_json()), json.loads(capsys.readouterr().out)
    for row in (*ours["rows"], *theirs["rows"]):
        del row["not_here"]  # names the memory that is free now
    assert ours == theirs
    assert "fits on one RTX-4090" in fit.verdict and len(fit.to_pandas()) == len(fit.table.rows)
    assert max(drawn(fit).y) > 1 << 30
    advice = td.advise("random:Llama-3-8B", gpu="H100-SXM", progress=False)
    assert "on H100-SXM, where nothing was measured." in advice.verdict and len(advice.to_pandas()) >= 3
    assert "tokendyno export --model random:Llama-3-8B --gpu H100-SXM --arm " in advice.document.command
    good, bad = td.check("pocket", {"cache": "static"}), td.check("pocket", "loop=own")
    assert good.runnable and good.verdict == "This arm would run."
    assert not bad.runnable and "Set cache=static." in bad.verdict
    assert drawn(good).x[0] == "weights" and list(bad.to_pandas()["level"]).count("blocked") == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: td.run("pocket", max_new_token=3), "Did you mean 'max_new_tokens'"),
        (lambda: td.run("pocket", max_new_tokens="many"), "must be a whole number from 1 to 32,768, not 'many'"),
        (lambda: td.run("poket"), "Did you mean 'pocket'"),
        (lambda: td.run("pocket", "loop=own", **QUICK), "Set cache=static"),
        (lambda: td.compare("pocket", seconds=-1.0), "above 0"),
        (lambda: td.sweep("pocket", over={"batch": [1]}), "batch"),
        (lambda: td.sweep("pocket", over={"batch_size": 4}, no_history=True), "at least two different values"),
        (lambda: td.fit("pocket", gpu="RTX-1"), "RTX-1"),
        (lambda: td.run("pocket", json="x"), "Unknown argument of td.run 'json'"),
        (lambda: td.run("pocket", prompt=[{"role": "user", "content": "Hi"}]), "prompt of td.run .* must be a text"),
        (lambda: td.compare("pocket", prompt=[1065, 371]), "prompt of td.compare is .1065, 371.; it must be a text"),
        (lambda: td.run("pocket", max_new_tokens=[8, 16]), "max_new_tokens of td.run is .8, 16.; it must be one value"),
        (lambda: td.load(cast("Any", None)), "model is None"),
        (lambda: td.load("pocket", max_length=5000), "max_length is 5000; it must be a whole number from 2 to 4,096"),
    ],
)
def test_bad_arguments_are_one_sentence(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_a_second_thread_does_not_measure_meanwhile() -> None:
    errors: list[str] = []

    def other() -> None:
        try:
            td.run("pocket", progress=False, **QUICK)
        except InputError as error:
            errors.append(str(error))

    with commands._alone():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(60)
    assert "Another thread of this process measures now" in errors[0]


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "plotly", None)
    result = td.check("pocket")
    for ask, package in ((result.to_pandas, "pandas"), (result.figure, "plotly")):
        with pytest.raises(InputError, match=f"pip install {package}"):
            ask()
