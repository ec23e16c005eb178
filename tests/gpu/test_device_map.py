"""The layers of one process on two GPUs: same text in float32, bytes of each as predicted, and a row that turns where
nothing is spread. Needs two GPUs."""

from pathlib import Path
from typing import Any

import pytest

from tests.gpu.test_parallel import compared
from tests.support.processes import sitecustomize, with_path
from tokendyno.backend import hardware
from tokendyno.backend.models import resolve
from tokendyno.backend.predict.parallel import spread
from tokendyno.backend.predict.weights import weight_bytes

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(len(hardware.detect().gpus) < 2, reason="needs two GPUs"),
]

ON_ONE = """
import sys
if any(word.startswith("tokendyno.backend.worker") for word in sys.orig_argv):
    from transformers.integrations import accelerate
    accelerate.infer_auto_device_map = lambda *args, **kwargs: {"": 0}
"""
ONE_LAYER_ELSEWHERE = """
import sys
if any(word.startswith("tokendyno.backend.worker") for word in sys.orig_argv):
    from tokendyno.backend.worker.load import loader
    plain = loader.load_as_checkpoint
    def spread(*args):
        model = plain(*args)
        model.hf_device_map["model.layers.3"] = 1
        return model
    loader.load_as_checkpoint = spread
"""


def row_of(arm: dict[str, Any]) -> dict[str, Any]:
    return next(row for row in arm["evidence"] if row["axis"] == "parallel")


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_two_gpus_give_the_text_of_one_with_the_bytes_that_were_predicted(cache: str) -> None:
    one, two = compared(f"dtype=float32,cache={cache}", f"dtype=float32,cache={cache},parallel=device-map-2")["arms"]
    assert one["token_ids"] == two["token_ids"]
    assert row_of(two)["status"] == "verified", row_of(two)
    facts = resolve("random:Qwen3-0.6B")
    held = [device["weight_bytes"] for device in two["ranks"]]
    assert held == [weight_bytes(one, "float32") for one in spread(facts, "float32", 2)]
    assert sum(device["kv_bytes"] for device in two["ranks"]) == two["memory_check"]["kv"]["predicted"]
    assert {device["of"] for device in two["ranks"]} == {"device"}


@pytest.mark.parametrize(("code", "status"), [(ON_ONE, ("failed", "no_effect")), (ONE_LAYER_ELSEWHERE, ("partial",))])
def test_the_row_turns_where_layers_lie_elsewhere(
    code: str, status: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sitecustomize(tmp_path, code)
    monkeypatch.setenv("PYTHONPATH", with_path(tmp_path))
    _, two = compared("dtype=float32", "dtype=float32,parallel=device-map-2")["arms"]
    assert row_of(two)["status"] in status, row_of(two)
