"""Commands that run nothing: check, fit, models."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.command_line import POCKET, sentence
from tests.support.machines import CPU
from tokendyno.backend import hardware
from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.cli.main import main
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.hardware.gpu_specs import gpus
from tokendyno.backend.optimizations import all_axes, axis_names

BAD_FIT = [
    (["--gpu", "MI300X"], "The catalogue has no GPU 'MI300X'."),
    (["--gpu", "24 GiB"], "24 GiB is a size of memory. What fits in it: tokendyno fit --vram 24GiB."),
    (["--vram", "16g"], "24GiB (2^30) or 24GB (10^9)"),
    (["--vram", "24GiB", "--gpu", "T4"], "not allowed with argument"),
    (["--context", "9000"], "Pocket, 5M has 4,096 positions"),
    (["--batch", "0"], "from 1 to 1,024"),
    (["--gpus", "3", "--gpu", "T4"], "Pocket, 5M cannot be split over 3 GPUs"),
    (["--gpus", "two"], "--gpus: must be a whole number from 1 to 64, not 'two'"),
    (["--vram", "-5GiB"], "Cannot read the size '-5GiB'. Write a number with a unit"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD_FIT)
def test_a_fit_that_cannot_be_worked_out_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert says in sentence(main(["fit", *arguments]), *capsys.readouterr())


@pytest.mark.parametrize(
    ("arm", "code", "levels"),
    [
        ("", 0, []),
        ("attention=sdpa", 0, ["fallback"]),
        ("dtype=float16", 0, ["note"]),
        ("cuda_graphs=manual", 2, ["blocked"]),
        ("attention=sdpa,cuda_graphs=manual", 2, ["fallback", "blocked"]),
        ("compiled", 0, []),
    ],
)
def test_check_gives_verdicts_with_reasons(
    capsys: pytest.CaptureFixture[str], arm: str, code: int, levels: list[str]
) -> None:
    assert main(["check", "--arm", arm, "--json", "-"]) == code
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert err == ""
    assert [verdict["level"] for verdict in document["verdicts"]] == levels
    assert all(verdict["reason"] for verdict in document["verdicts"])
    assert document["runnable"] is (code == 0)
    assert set(document["requested"]) == set(document["planned"]) == set(axis_names())
    assert main(["check", "--arm", arm]) == code
    shown = capsys.readouterr().out
    assert all(f"{level}: " in shown for level in levels)
    assert all(f"Source: {verdict['source']}" in shown for verdict in document["verdicts"] if verdict["source"])
    assert ("would run" in shown) is (code == 0)
    assert "predicted" in shown


@pytest.mark.parametrize(
    ("model", "says"), [("./bare", "has no weights"), ("./cut", "again"), ("./pickle", "a pickle")]
)
def test_check_says_would_run_only_of_what_can_be_loaded(
    room: Path, capsys: pytest.CaptureFixture[str], model: str, says: str
) -> None:
    code, shown = main(["check", "--model", model]), capsys.readouterr()
    assert code == 2 and says in shown.out + shown.err and "would run" not in shown.out
    assert main(["check", "--model", f"random:{model}"]) == 0


ELSEWHERE = ["--model", "Llama-3-8B", "--arm", "kernels=local,cache=static,cuda_graphs=manual,loop=own"]


def test_an_arm_is_checked_and_written_for_gpus_that_are_not_here(
    room: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    poor = replace(CPU, packages=(("torch", "2.13.0+cpu"), ("transformers", "5.22.2")), no_compiler="there is none")
    monkeypatch.setattr(hardware, "detect", lambda: poor)
    assert main(["check", *ELSEWHERE]) == main(["export", *ELSEWHERE]) == 2
    capsys.readouterr()
    assert main(["check", *ELSEWHERE, "--gpu", "h200 sxm", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    (spec,) = [gpu for gpu in gpus() if gpu.name == "H200-SXM"]
    assert (document["device"], document["gpus"], document["free_bytes"]) == (spec.name, 1, spec.memory_bytes)
    assert "data sheet of H200-SXM" in document["bound"]["words"]
    assert document["verdicts"][-1]["reason"] == document["assumed"] != ""
    for options in ([], ["--standalone"]):
        assert main(["export", *ELSEWHERE, "--gpu", "H200-SXM", *options]) == 0
        script = capsys.readouterr().out
        compile(script, "script", "exec")
        assert document["assumed"] in script.replace("\n# ", " ")
        assert not any(here in script for here in ("+cpu", str(kernel_packages.BUNDLED)))
    assert 'DEVICE = "cuda"' in script


def test_on_a_card_its_own_rules_and_memory_decide(capsys: pytest.CaptureFixture[str]) -> None:
    arm = ["check", "--model", "Llama-3-8B", "--arm"]
    assert main([*arm, "attention=flash_attention_2", "--gpu", "T4"]) == 2
    shown = capsys.readouterr().out
    assert "refused on T4" in shown and "capability 8.0" in shown and "Fix: attention=auto" in shown
    assert main([*arm, "parallel=tensor-2", "--gpu", "T4"]) == 2
    assert "2 GPUs" in capsys.readouterr().out
    assert main([*arm, "parallel=tensor-2", "--gpu", "T4", "--gpus", "2"]) == 0
    shown = capsys.readouterr().out
    assert "would run on 2 x T4." in shown and "on each rank" in shown


def test_gpus_that_an_arm_leaves_idle_are_not_said_to_run_it(capsys: pytest.CaptureFixture[str]) -> None:
    for arm, used in (("parallel=tensor-2", 2), ("parallel=device-map-2", 2), ("baseline", 1)):
        assert main(["check", "--arm", arm, "--gpu", "H200", "--gpus", "3"]) == 0
        assert f"This arm would run on 3 x H200-SXM (it uses {used})." in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "export"])
@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--gpu", "H100"], "Did you mean H100-SXM"),
        (["--gpus", "2"], "Name one of the catalogue with --gpu"),
        (["--gpu", "T4", "--gpus", "0"], "must be a whole number from 1 to"),
    ],
)
def test_gpus_that_cannot_be_meant_are_a_sentence(
    capsys: pytest.CaptureFixture[str], command: str, options: list[str], says: str
) -> None:
    assert says in sentence(main([command, *options]), *capsys.readouterr())


def test_fit_is_a_table_and_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--model", "Llama-3-8B", "--gpu", "rtx 4090", "--context", "4096", "--batch", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("Llama 3 8B on RTX-4090 (24.0 GiB; 1,008 GB/s")
    assert "Llama 3 8B fits on one RTX-4090 as it is (bfloat16): " in out
    assert main(["fit", "--model", "Llama-3-8B", "--vram", "24GB", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["gpu"]["memory_bytes"] == 24 * 10**9 and document["context"] == 8192
    assert {row["quantization"] for row in document["rows"]} >= {"none", "bnb-nf4"}
    assert all(row["floor_s"] is None for row in document["rows"])
    assert main(["fit", "--model", "gpt-oss-20b", "--gpu", "RTX-4090"]) == 0
    words = capsys.readouterr().out
    assert main(["fit", "--model", "gpt-oss-20b", "--gpu", "RTX-4090", "--json", "-"]) == 0
    answer = json.loads(capsys.readouterr().out)["answer"]
    assert answer["words"] in words and f"As an arm: {answer['arm']}" in words
    assert answer["choices"] == {"prefill": "chunks-2048"} and answer["tried"] > 1 and len(answer["curves"]) == 2


def test_fit_needs_nothing_but_a_config(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = room / "only"
    bare.mkdir()
    shutil.copy(POCKET / "config.json", bare)
    assert main(["fit", "--model", "only", "--gpu", "T4", "--json", "fit.json"]) == 0
    assert json.loads((room / "fit.json").read_text())["rows"][0]["fits"] is True
    assert "only on T4" in capsys.readouterr().out


def test_of_a_bundle_what_gave_way_is_said_as_text_and_in_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--model", "random:gpt2", "--arm", "lowest-latency"]) == 0
    text = capsys.readouterr().out
    note = "note: Of the preset lowest-latency, projections=fused is left out: This architecture has q, k and v"
    assert note in text
    assert main(["check", "--model", "random:gpt2", "--arm", "lowest-latency", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["requested"]["projections"] == "separate"
    assert [v["axis"] for v in document["verdicts"] if v["reason"].startswith("Of the preset")] == [
        "kernels",
        "projections",
        "cuda_graphs",
        "prefill",
    ]


def test_a_script_of_a_bundle_is_written_with_what_check_notes_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    arm = ["--model", "random:gpt2", "--arm", "lowest-latency"]
    assert main(["check", *arm, "--json", "-"]) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert main(["export", *arm]) == 0
    script, notes = capsys.readouterr()
    assert notes.splitlines() == [f"{v['level']} ({v['axis']}): {v['reason']}" for v in verdicts]
    assert "note (projections): Of the preset lowest-latency, projections=fused is left out: " in notes
    compile(script, "arm.py", "exec")


def test_list_names_whatever_an_arm_a_model_or_a_gpu_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    table = capsys.readouterr().out
    assert main(["list", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    named = [entry["name"] for kind in ("presets", "axes", "gpus", "models") for entry in document[kind]]
    assert all(name in table for name in named)
    assert {axis["name"]: len(axis["choices"]) for axis in document["axes"]} == {
        axis.name: len(axis.choices) for axis in all_axes()
    }
    assert {preset.name for preset in arm_presets()} | {gpu.name for gpu in gpus()} <= set(named)
    assert main(["list", "gpus", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["axes"] == []
    assert main(["models", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["models"] == document["models"]
    assert [model["name"] for model in document["models"] if model["default"]] == ["pocket"]
