"""What fits: the table against the predictions it is made of, sorted, from a config alone; bad input in words."""

import functools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import text_of
from tests.support.machines import CPU, GIB, H200
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.cli.fit import fit_blocks
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit import text as fit_text
from tokendyno.backend.fit.device import THIS, device_of, parse_size
from tokendyno.backend.fit.row import FitRow, margin_of
from tokendyno.backend.fit.table import Fit, fit
from tokendyno.backend.fit.view import view
from tokendyno.backend.hardware import bandwidth
from tokendyno.backend.hardware.elsewhere import stocked
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.plan import DYNAMIC
from tokendyno.backend.predict.kv import kv_bytes
from tokendyno.backend.predict.memory import peak_bytes
from tokendyno.backend.predict.parallel import NO_CHOICE, choice_of, shard
from tokendyno.backend.predict.roofline import bound
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.shape import Shape
from tokendyno.backend.predict.weights import weight_bytes


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def find(model: str, gpu: str | None = None, vram: str | None = None, machine: Any = CPU, **more: Any) -> Fit:
    """Several tests ask for the same table; that of a listed GPU depends on nothing else than what is given here."""
    return (_listed if gpu not in (None, THIS) and not Path(model).is_absolute() else _fit)(
        model, gpu, vram, machine, **more
    )


def _fit(model: str, gpu: str | None, vram: str | None, machine: Any, **more: Any) -> Fit:
    return fit(model, device_of(machine, gpu, vram), **more)


_listed = functools.cache(_fit)


def row(found: Fit, quantization: str = "none", cache: str = "dynamic") -> FitRow:
    (match,) = [r for r in found.rows if (r.choices["quantization"], r.choices["cache"]) == (quantization, cache)]
    return match


def test_a_row_is_what_the_predictions_say() -> None:
    found = find("Llama-3-8B", "RTX-4090", context=4_096, batch=2)
    facts, one = resolve("Llama-3-8B"), row(found)
    setup = Setup(device="cuda", capability=(8, 9))
    assert one.weights_bytes == weight_bytes(facts)
    assert one.kv_bytes == kv_bytes(facts, DYNAMIC, 4_095, 2, 2).total
    assert one.peak_bytes == peak_bytes(Shape(facts, setup, 4_095, 1, 2)).total
    assert found.limits is not None
    assert one.floor_s == bound(facts, setup, 4_096, 2, found.limits).seconds
    assert one.fits == (one.peak_bytes <= found.device.memory_bytes)


@pytest.mark.parametrize(("model", "gpu"), [("Llama-3-8B", "T4"), ("Mistral-7B-v0.1", "A10"), ("gpt-oss-20b", "L4")])
def test_the_longest_context_fits_and_one_more_token_does_not(model: str, gpu: str) -> None:
    found = find(model, gpu, context=512)
    room = found.device.memory_bytes
    assert any(r.fits for r in found.rows)
    for r in found.rows[::5]:
        assert r.fits == (r.max_context >= 512)
        if 0 < r.max_context < found.facts.max_positions:
            at, over = (
                row(find(model, gpu, context=r.max_context + more), r.choices["quantization"], r.choices["cache"])
                for more in (0, 1)
            )
            assert at.peak_bytes <= room < over.peak_bytes


def test_what_fits_stands_first_and_loses_least() -> None:
    found = find("Llama-3-8B", "T4")
    order = [r.fits for r in found.rows]
    assert order == sorted(order, reverse=True) and order[0] and not order[-1]
    assert found.best is not None and found.best == found.rows[0]
    assert found.best.choices["quantization"] not in ("none", "bnb-fp4")
    roomy = find("Llama-3-8B", "H200").best
    assert roomy is not None and (roomy.choices["quantization"], roomy.choices["cache"]) == ("none", "dynamic")


@pytest.mark.parametrize(
    ("model", "gpu", "arm"),
    [
        ("Llama-3-8B", "RTX-4090", {}),
        ("Llama-3-8B", "T4", {"quantization": "torchao-int8"}),
        ("gpt-oss-20b", "RTX-4090", {"prefill": "chunks-2048"}),
        ("Mistral-7B-v0.1", "T4", {"cache": "offloaded", "prefill": "chunks-2048"}),
        ("Mixtral-8x7B-v0.1", "T4", {"parallel": "tensor-8"}),
    ],
)
def test_the_answer_is_one_of_the_rows_with_its_figures(model: str, gpu: str, arm: dict[str, str]) -> None:
    found = find(model, gpu)
    answer, defaults = found.smallest.found, {axis.name: axis.default for axis in all_axes()}
    assert answer is not None and answer.choices == arm
    own = {"quantization": found.facts.quantization or "none"}  # what the checkpoint comes in is no change
    changed = [{a: c for a, c in r.choices.items() if c != (defaults | own)[a]} for r in found.main]
    (same,) = [r for r, change in zip(found.main, changed, strict=True) if change == arm]
    assert same.fits and (same.peak_bytes, same.max_context) == (answer.needed_bytes, answer.max_context)
    shown = text_of(fit_blocks(found), 300)
    assert ("Prefill chunks of 2,048" in shown.split("Fits ")[1]) == ("prefill" in arm)
    assert (found.best is None) == ("parallel" in arm), "of the GPUs that were asked for"


def test_what_is_missing_here_is_said_here_and_does_not_matter_elsewhere() -> None:
    bare = replace(CPU, packages=tuple(p for p in CPU.packages if p[0] != "bitsandbytes"))
    here = row(find("Llama-3-8B", machine=bare), "bnb-nf4")
    assert here.fits and "bitsandbytes" in here.not_here
    elsewhere = find("Llama-3-8B", "H200", machine=bare)
    assert row(elsewhere, "bnb-nf4").fits and row(elsewhere, "bnb-nf4").not_here == here.not_here
    assert find("Llama-3-8B", machine=bare).best != here
    order = [bool(r.not_here) for r in find("Llama-3-8B", machine=bare).rows]
    assert order == sorted(order) and order[-1], "what cannot run here comes last, of the table of this machine only"
    assert [r.choices for r in elsewhere.rows] == [r.choices for r in find("Llama-3-8B", "H200").rows]


def test_this_machine_is_measured_by_what_is_free() -> None:
    found = find("pocket")
    assert found.device.here and found.device.memory_bytes == CPU.free_bytes
    assert row(found).floor_s is None and "doctor --bandwidth" in found.device.note
    bandwidth.remember(bandwidth.Bandwidth(4e10, 3e10, CPU.name, "sum"))
    measured = find("pocket")
    assert row(measured).floor_s is not None and measured.device.note == ""
    gpu = find("pocket", machine=H200)
    assert gpu.device.name == "NVIDIA H200" and gpu.device.memory_bytes == 139 * GIB
    assert find("pocket", THIS, machine=H200).device == gpu.device
    assert device_of(H200, freeable_bytes=GIB).memory_bytes == 140 * GIB


def test_a_folder_with_nothing_but_a_config_is_enough(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 1000,
        "max_position_embeddings": 2048,
        "dtype": "bfloat16",
    }
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    found = find(str(folder), "A100-40GB")
    assert found.context == 2_048 and row(found).fits
    assert row(found).kv_bytes == 2 * 4 * 64 * 2 * 4 * 2_047


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"context": 9_000}, "has 8,192 positions"),
        ({"context": 0}, "at least 1"),
        ({"context": -5}, "at least 1"),
        ({"batch": 0}, "from 1 to 1,024"),
        ({"batch": 5_000}, "from 1 to 1,024"),
        ({"gpu": "RTX 4099"}, "Did you mean"),
        ({"vram": "16g"}, "24GiB"),
        ({"vram": "24GiB", "gpu": "H200"}, "not both"),
        ({"gpus": 3, "gpu": "H200"}, "Take one of 1, 2, 4, 8"),
        ({"gpus": 0, "gpu": "H200"}, "from 1 to 64"),
    ],
)
def test_what_cannot_be_is_refused_in_words(more: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        find("Llama-3-8B", **more)


@pytest.mark.parametrize(
    ("text", "size"),
    [("24GiB", 24 << 30), ("24 gib", 24 << 30), ("24GB", 24 * 10**9), ("0.5TiB", 1 << 39), ("80000MiB", 80_000 << 20)],
)
def test_sizes_are_read_with_their_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["24", "24g", "24G", "GiB", "", "-1GiB", "1e3GiB", "nan GiB", "0GiB", "99999999TiB", "1KiB"]
)
def test_sizes_without_a_unit_or_beyond_reason_are_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"24GiB \(2\^30\) or 24GB \(10\^9\)"):
        parse_size(text)


def test_several_gpus_have_one_table_of_one_gpus_bytes() -> None:
    found, alone = (find("Llama-3-8B", "RTX-4090", gpus=count, context=4_096) for count in (2, 1))
    facts, one = resolve("Llama-3-8B"), row(found)
    assert one.weights_bytes == weight_bytes(shard(facts, 2)) < 0.51 * row(alone).weights_bytes
    assert one.kv_bytes == row(alone).kv_bytes // 2
    setup = Setup(device="cuda", capability=(8, 9), tensor_parallel=2)
    assert one.peak_bytes == peak_bytes(Shape(facts, setup, 4_095, 1, 1)).total
    assert found.limits is not None and one.floor_s == bound(facts, setup, 4_096, 1, found.limits).seconds
    assert (found.as_json()["gpus"], alone.as_json()["gpus"]) == (2, 1)
    assert {r.choices["quantization"] for r in found.rows} == {"none"} < {r.choices["quantization"] for r in alone.rows}


@pytest.mark.parametrize("model", ["Llama-3-8B", "random:gpt-oss-20b", "gpt-oss-20b", "Olmo-3-7B"])
def test_rows_for_several_gpus_are_what_an_arm_runs_there_with_the_same_bytes(model: str) -> None:
    pair = replace(H200, gpus=tuple(replace(H200.gpus[0], index=i) for i in range(2)))
    found = find(model, "H200", gpus=2, context=4_096)
    assert found.rows
    for one in found.rows:
        choices = {**one.choices, "parallel": choice_of(resolve(model), 2)}
        work = Workload(prompt_tokens=4_095, max_new_tokens=1)
        arm = check(make_config(model, choices), resolve(model), stocked(pair), work)
        assert not [verdict.reason for verdict in arm.blocked], choices
        assert arm.memory.total == one.peak_bytes, choices
    quantized = {r.choices["quantization"]: r for r in find(model, "T4", context=4_096).rows}
    assert all(not r.enough_gpus for name, r in quantized.items() if name != "none" and not name.startswith("mxfp4"))


def test_several_gpus_are_said_in_words_and_one_is_not() -> None:
    text = printed(find("Llama-3-8B", "RTX-4090", gpus=2))
    assert "on 2 x RTX-4090 (24.0 GiB each; " in text and "sizes are per GPU" in text
    assert "as parallel=tensor-2 runs it" in text and "bitsandbytes fail" in text
    assert "Quantized weights across ranks are untried" in text and "The runtime includes NCCL's buffers" in text
    assert "Untested on several GPUs: offloaded" in text
    many = find("Olmo-3-7B", "H200", gpus=16)
    assert f"Predicted for 16 ranks. {NO_CHOICE}" in printed(many) and many.rows[0].not_here == NO_CHOICE
    alone = printed(find("Llama-3-8B", "RTX-4090"))
    assert not any(word in alone for word in ("parallel=", "each;", "one GPU", "Untested"))
    oss = printed(find("gpt-oss-20b", "H200", gpus=2))
    assert "parallel=expert-2" in oss and "Whole experts are shared out" in oss
    assert "yes   mxfp4  " in oss and "mxfp4-dequantized" in oss
    assert "attention outputs are gathered" in printed(find("Olmo-3-7B", "H200", gpus=2))


def test_this_machine_is_asked_for_no_more_gpus_than_it_has() -> None:
    with pytest.raises(InputError, match="has no GPUs, not 2"):
        find("Llama-3-8B", gpus=2)
    with pytest.raises(InputError, match="has 1 GPU, not 2"):
        find("Llama-3-8B", gpus=2, machine=H200)
    second = replace(H200.gpus[0], index=1, free_bytes=50 * GIB)
    pair = replace(H200, gpus=(*H200.gpus, second))
    assert find("Llama-3-8B", gpus=2, machine=pair).device.memory_bytes == 50 * GIB
    assert find("Llama-3-8B", machine=pair).device.memory_bytes == H200.gpus[0].free_bytes


def test_a_checkpoint_that_is_packed_in_an_unknown_way_is_not_split(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 512,
        "num_hidden_layers": 4,
        "num_attention_heads": 8,
        "vocab_size": 1000,
        "dtype": "bfloat16",
        "quantization_config": {"quant_method": "gptq", "bits": 4},
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert find(str(tmp_path), "H200").rows
    with pytest.raises(InputError, match=r"a checkpoint in gptq is split is not known here\. Use one GPU"):
        find(str(tmp_path), "H200", gpus=2)


def test_the_words_say_what_the_numbers_say() -> None:
    found = find("Llama-3-8B", "T4", context=2_000, batch=3)
    text = printed(found)
    assert "Llama 3 8B on T4 (15.0 GiB; 320 GB/s, data sheet of T4), context 2,000 tokens, batch 3" in text
    table = [fit_text.cells(found, one) for one in found.rows]
    assert [cell[0] in ("yes", "tight") for cell in table] == [r.fits for r in found.rows]
    assert all(len(cell) == len(fit_text.columns(found)) for cell in table)
    assert len(set(fit_text.columns(found))) == len(table[0]), "each column has a name of its own"


def test_where_nothing_fits_it_says_what_would() -> None:
    some = find("gpt-oss-20b", "RTX-4090", context=100_000)
    said, longest = fit_text.answer(some), max(r.max_context for r in some.rows)
    assert some.best is None and f"a context of {longest:,} tokens" in said
    card = some.rows[0].smallest_gpu
    assert not card or card in said
    assert any("eager attention" in remark for remark in fit_text.remarks(some))
    none = find("gpt-oss-120b", "T4")
    assert "H100-NVL" in fit_text.answer(none) and "context of" not in fit_text.answer(none)
    assert {fit_text.longest(none, one) for one in none.rows} == {"none"}
    unsplit = find("gpt-oss-20b", "T4")
    several = min(r.enough_gpus for r in unsplit.rows if r.enough_gpus)
    assert not unsplit.best and f"{several} x T4" in fit_text.answer(unsplit)
    nowhere = find("gpt-oss-120b", "T4", batch=1_024, context=100_000)
    assert "Choose a smaller model or batch" in fit_text.answer(nowhere)
    assert {fit_text.would_do(nowhere, one) for one in nowhere.rows} == {"no GPU listed"}


def test_the_parts_of_a_row_are_its_peak_and_its_margin_is_what_is_left() -> None:
    for found in (find("Llama-3-8B", "RTX-4090"), find("Mistral-7B-v0.1", "T4"), find("bert-base-uncased", "L4")):
        for one, shown in zip(found.rows, view(found).rows, strict=True):
            assert sum(shown.parts) == one.peak_bytes == found.device.memory_bytes - one.margin_bytes
            assert one.fits == (one.margin != "does not fit") == (one.margin_bytes >= 0)
            assert shown.cells[0].split(" ", 1)[1] == one.margin
    offloaded = row(find("Llama-3-8B", "RTX-4090"), cache="offloaded")
    assert 0 < offloaded.kv_host_bytes < offloaded.kv_bytes


@pytest.mark.parametrize(("margin", "word"), [(-1, "does not fit"), (0, "tight"), (99, "tight"), (100, "comfortable")])
def test_a_margin_is_tight_below_a_tenth_or_what_the_prediction_may_be_off_by(margin: int, word: str) -> None:
    assert margin_of(margin, 1_000) == word
    assert margin_of(margin, 1_000, stated=0.15) == ("tight" if margin == 100 else word)


def test_an_encoder_has_no_rows_about_a_cache() -> None:
    found = find("bert-base-uncased", "T4", batch=10)
    assert all(set(r.choices) == {"quantization"} and r.kv_bytes == 0 for r in found.rows)
    assert len({r.choices["quantization"] for r in found.rows}) == len(found.rows)
    names = fit_text.columns(found)
    assert names[2:5] == ["Dtype", "Weights", "Activations"] and names[-1] == "Bound per pass"
    assert "input of 512 tokens, batch 10" in printed(found) and "keeps no KV cache" in printed(found)
    assert view(found).parts == ["Weights", "Activations", "Runtime"]
    assert row_of(found).workspace_bytes > row_of(find("bert-base-uncased", "T4")).workspace_bytes


def printed(found: Fit) -> str:
    """What the command line prints."""
    return text_of(fit_blocks(found))


def row_of(found: Fit) -> FitRow:
    """The row without quantization."""
    return next(r for r in found.rows if r.choices["quantization"] == "none")


def test_a_row_that_needs_more_than_is_free_here_cannot_run_here() -> None:
    small = replace(CPU, free_bytes=8 * GIB)
    found = find("Llama-3-8B", "H200", machine=small)
    assert "needs 15.4 GiB here even for a short prompt, and 8.00 GiB are free" in row(found).not_here
    assert (
        row(found, "torchao-int4").not_here.startswith("torchao-int4") or "needs" not in row(found, "bnb-nf4").not_here
    )


def test_a_row_of_several_gpus_is_an_arm_that_shares_the_model() -> None:
    pair = replace(H200, gpus=(*H200.gpus, replace(H200.gpus[0], index=1)))
    here = find("Llama-3-8B", machine=pair, gpus=2)
    assert {(r.choices["parallel"], r.not_here) for r in here.rows} == {("tensor-2", "")}
    assert here.best is not None and view(here).rows[0].choices == here.best.choices
    assert "Would not run here" not in printed(here)
    for machine, says in ((replace(CPU, free_bytes=8 * GIB), "It needs"), (H200, "need 2 GPUs")):
        found = find("Llama-3-8B", "RTX-4090", machine=machine, gpus=2)
        assert all(r.fits for r in found.rows) and says in row(found).not_here
    assert {r.not_here for r in find("Olmo-3-7B", "H200", gpus=16).rows} == {NO_CHOICE}


def test_what_no_arm_runs_on_several_gpus_is_left_out_and_never_said_to_do() -> None:
    old = find("gpt-oss-20b", "T4", gpus=2)
    assert {r.choices["quantization"] for r in old.rows} == {"mxfp4-dequantized"}
    assert "MXFP4 compute all experts on one device" in " ".join(old.refused)
    assert "8 x T4 (quantization=mxfp4-dequantized,cache=dynamic,parallel=expert-8)" in fit_text.answer(old)
    assert row(find("gpt-oss-20b", "T4"), "mxfp4").enough_gpus == 0
