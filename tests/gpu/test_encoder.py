"""An encoder at its real width on a GPU: attention, compile, quantization and captured passes, each proved, with its
memory released."""

from typing import Any

import pytest
import torch

from tests.support.ledger import SOUND
from tests.support.refusals import skip_or_fail
from tokendyno.backend import hardware
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.worker.loop.passes import CapturedPasses, without_idle_mask
from tools.bench.gpu.bench_cli import tell
from tools.bench.gpu.every import NOT_BACK_BYTES, left_behind_bytes, perform, used_bytes

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

MODEL = "random:bert-base-uncased"
AXES = ("dtype", "attention", "compile", "quantization")
PASSES = 200
WORK = Workload(prompt_tokens=128, max_new_tokens=PASSES, batch_size=8)
CAPTURED = (
    "",
    ",shapes=buckets,dtype=bfloat16",
    ",dtype=float16,compile=default",
    ",attention=eager",
    ",projections=fused",
    ",quantization=torchao-int8",
)
"""What goes with captured passes."""


def arms() -> list[str]:
    """Each choice of these axes alone, and useful combinations."""
    single = [f"{axis.name}={c.name}" for axis in all_axes() if axis.name in AXES for c in axis.choices]
    return [
        *single,
        "dtype=float16,compile=max-autotune",
        "dtype=float16,attention=sdpa,compile=reduce-overhead",
        *(f"cuda_graphs=manual{more}" for more in CAPTURED),
    ]


def blocked(arm: str, model: str) -> str:
    """Why the rules refuse this arm here, "" if they do not."""
    found = check(parse_arm(model, arm), resolve(model), hardware.detect(), WORK).blocked
    return found[0].reason if found else ""


@pytest.fixture(scope="module")
def baseline() -> int:
    """Bytes in use on the GPU before anything was loaded."""
    return used_bytes()


@pytest.mark.parametrize("arm", arms())
def test_the_choice_is_proved_and_the_memory_given_back(
    baseline: int, bench: Bench, short_encoder: str, arm: str
) -> None:
    """What is autotuned has few layers: each of them adds to what is compiled."""
    model = short_encoder if "max-autotune" in arm else MODEL
    reason = blocked(arm, model)
    if reason:
        skip_or_fail(arm, reason, model)
    run, document = perform(bench, model, dict(parse_arm(model, arm).choices), WORK)
    left = left_behind_bytes(bench, baseline)
    assert run.status == "done", run.message
    tell(document)
    (only,) = document["arms"]
    for row in only["evidence"]:
        assert row["status"] in (*SOUND, "fallback"), row
    assert document["unit"] == "forward" and only["ttft_s"] is None and only["token_ids"] == []
    assert only["clock"] == "CUDA events"
    assert len(only["latency_s"]) == PASSES and min(only["latency_s"]) > 0
    assert only["time_s"] == sorted(only["time_s"])
    assert left < NOT_BACK_BYTES


def small_bert() -> Any:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4, initializer_range=0.2
    )
    return BertModel(config).to("cuda", torch.bfloat16).eval()


def text(tokens: int, padded: int = 0, batch: int = 2) -> dict[str, Any]:
    """Random ids, the last ones of the last row padding."""
    ids = torch.randint(1, 30_000, (batch, tokens), device="cuda")
    mask = torch.ones_like(ids)
    mask[-1, tokens - padded :] = 0
    return {"input_ids": ids, "attention_mask": mask}


def test_graphs_of_several_lengths_compute_what_the_model_does_in_any_order() -> None:
    """Texts of any length and padding, again and again: graphs share the memory of what they need on the way."""
    model = small_bert()
    captured = CapturedPasses(model)
    with torch.inference_mode():
        for tokens, padded in ((256, 0), (64, 0), (128, 5), (64, 60), (256, 0), (128, 127), (64, 0), (128, 0)):
            given = text(tokens, padded)
            states = captured(**without_idle_mask(given))[0].clone()
            counted = given["attention_mask"].bool()
            torch.testing.assert_close(states[counted], model(**given)[0][counted], atol=0.05, rtol=0.05)


def test_graphs_of_several_lengths_need_the_memory_of_the_largest() -> None:
    model = small_bert()
    with torch.inference_mode():
        model(**text(512, batch=32))  # workspaces of the libraries
        held = []
        for lengths in ((512,), (512, 256, 128, 64)):
            torch.cuda.empty_cache()
            before = torch.cuda.memory_reserved()
            captured = CapturedPasses(model)
            for tokens in lengths:
                captured(**without_idle_mask(text(tokens, batch=32)))
            torch.cuda.empty_cache()
            held.append(torch.cuda.memory_reserved() - before)
            del captured
    assert 32 << 20 < held[0] <= held[1] < 1.4 * held[0], [round(one / (1 << 20)) for one in held]


def test_a_pass_that_asks_the_device_is_no_captured_one() -> None:
    def asking(input_ids: Any) -> Any:
        return input_ids * int(input_ids.sum())

    with pytest.raises(RuntimeError, match="captur"), torch.inference_mode():
        CapturedPasses(asking)(input_ids=torch.ones(4, device="cuda"))
