"""What is predicted from the length of a prompt, without a worker."""

import pytest

from tests.support.machines import CPU, H200
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.prediction import predict
from tokendyno.backend.hardware import Machine
from tokendyno.backend.messages import Started
from tokendyno.backend.models import resolve
from tokendyno.backend.runs.records import Predicted

STARTED = Started(prompt_tokens=100, batch_size=2, max_new_tokens=50, notes=[])


def predicted(model: str, machine: Machine = H200, started: Started = STARTED, **choices: str) -> Predicted:
    facts = resolve(model)
    checked = check(make_config(model, choices), facts, machine, Workload(prompt="x"))
    return predict("B", checked, facts, machine, started)


def test_a_decoder_has_a_kv_curve_from_the_prompt_to_the_last_token_that_is_fed_back() -> None:
    prediction = predicted("Llama-3-8B")
    assert prediction.arm == "B"
    assert (prediction.kv[0].length, prediction.kv[-1].length) == (100, 149)
    # sequences, tokens, layers, KV heads, head, k+v, bf16
    assert prediction.kv[-1].full == 2 * 149 * 32 * 8 * 128 * 2 * 2
    assert (prediction.roofline[0].length, prediction.roofline[-1].length) == (101, 149), "token 0 is the prefill"
    assert prediction.roofline[0].seconds < prediction.roofline[-1].seconds
    assert prediction.memory["total"] > prediction.memory["tensors"] > 0
    reads = prediction.reads
    assert reads is not None and reads.kv_bytes == 2 * 101 * 32 * 8 * 128 * 2 * 2 and "H200" in reads.source
    assert reads.bytes_per_s is not None
    assert (reads.weight_bytes + reads.kv_bytes) / reads.bytes_per_s == pytest.approx(prediction.roofline[0].seconds)


def test_a_static_cache_has_its_whole_size_from_the_first_token() -> None:
    prediction = predicted("Llama-3-8B", started=Started(100, 2, 50, [], 256), cache="static")
    assert {point.full for point in prediction.kv} == {2 * 256 * 32 * 8 * 128 * 2 * 2}


def test_copies_of_one_text_read_the_experts_of_one() -> None:
    one, eight = (predicted("random:Qwen3-30B-A3B", started=Started(4, n, 50, [])).prefill for n in (1, 8))
    assert one is not None and eight is not None and one.seconds == eight.seconds


def test_an_encoder_has_no_kv_curve_and_one_length() -> None:
    prediction = predicted("random:bert-base-uncased")
    assert prediction.kv == [] and {point.length for point in prediction.roofline} == {100}


def test_without_a_bandwidth_there_is_no_bound_and_the_note_says_so() -> None:
    prediction = predicted("pocket", CPU)
    assert prediction.roofline == [] and prediction.roofline_note and prediction.roofline_work == ""
    assert prediction.kv and prediction.memory["total"] > 0
    assert prediction.reads is not None and prediction.reads.weight_bytes > 0 and prediction.reads.bytes_per_s is None


@pytest.mark.parametrize(("speculation", "remark"), [("off", False), ("prompt-lookup", True)])
def test_the_bound_of_speculation_says_that_it_can_be_beaten(speculation: str, remark: bool) -> None:
    assert ("speculation can beat it" in predicted("Llama-3-8B", speculation=speculation).roofline_work) is remark


def test_the_bound_of_the_first_token_is_that_of_a_single_prompt_on_a_gpu_of_the_catalogue() -> None:
    prediction = predicted("Llama-3-8B", started=Started(8_000, 1, 50, [])).prefill
    assert prediction is not None and prediction.limited_by == "compute"
    assert "Tflop at 989.4 Tflop/s, data sheet of H200" in prediction.work
    assert predicted("Llama-3-8B", started=Started(4, 1, 50, [])).prefill.limited_by == "memory"  # type: ignore[union-attr]
    assert predicted("Llama-3-8B", machine=CPU).prefill is None
    assert predicted("Llama-3-8B", batching="static").prefill is None
    assert predicted("bert-base-uncased").prefill is None
