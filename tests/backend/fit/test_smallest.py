"""The smallest arrangement that fits: against what the rules and predictions of an arm say, and against every one that
costs less."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines import CPU, GIB, H200
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.fit.device import Device, device_of, roomy
from tokendyno.backend.fit.smallest import Arrangement, smallest
from tokendyno.backend.fit.table import fit
from tokendyno.backend.fit.text import answer, remarks
from tokendyno.backend.fit.view import answer_view
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations import all_axes


def as_an_arm(model: str, choices: Mapping[str, str], device: Device, context: int, batch: int, gpus: int) -> Checked:
    """The arm as Compare would check it on a machine with so many of these GPUs, unlimited in memory."""
    machine = replace(device.machine, gpus=tuple(replace(device.machine.gpus[0], index=at) for at in range(gpus)))
    work = Workload(prompt_tokens=context - 1, max_new_tokens=1, batch_size=batch)
    return check(make_config(model, choices), resolve(model), roomy(machine), work)


@pytest.mark.parametrize(
    ("model", "gpu", "batch", "choices"),
    [
        ("Llama-3-8B", "H100-SXM", 1, {}),
        ("gpt-oss-20b", "RTX-4090", 1, {"prefill": "chunks-2048"}),
        ("Llama-3-70B", "H100-SXM", 1, {"quantization": "torchao-int8"}),
        ("Llama-3-8B", "T4", 10, {"quantization": "torchao-int8", "cache": "offloaded", "prefill": "chunks-2048"}),
    ],
)
def test_no_arrangement_that_costs_less_fits(model: str, gpu: str, batch: int, choices: dict[str, str]) -> None:
    facts, device, context = resolve(model), device_of(CPU, gpu), 8_192
    found = smallest(facts, device, context, batch).found
    assert found is not None and found.choices == choices

    def cost(change: Mapping[str, str]) -> tuple[int, int, list[int]]:
        losses = sorted((losses_of[axis][choice] for axis, choice in change.items()), reverse=True)
        return max(losses, default=-1) // 10, len(losses), losses

    losses_of: dict[str, dict[str, int]] = {}
    for axis in all_axes():
        known = {one.name: one.loss for one in axis.choices if one.loss is not None and one.name != axis.default}
        losses_of |= {axis.name: known} if known else {}
    for names in itertools.product(*([None, *known] for known in losses_of.values())):
        change = {axis: name for axis, name in zip(losses_of, names, strict=True) if name}
        if cost(change) < cost(found.choices):
            checked = as_an_arm(model, change, device, context, batch, 1)
            refused = [one for one in checked.verdicts if one.level in ("blocked", "fallback")]
            assert refused or checked.needed_bytes > device.memory_bytes, change


@pytest.mark.parametrize(
    ("model", "gpu", "batch", "gpus"),
    [
        ("gpt-oss-20b", "RTX-4090", 1, 1),
        ("Llama-3-8B", "T4", 10, 1),
        ("Llama-3-70B", "A10", 1, 1),
        ("gpt2", "T4", 1, 2),
    ],
)
def test_its_figures_are_those_of_the_arm(model: str, gpu: str, batch: int, gpus: int) -> None:
    facts, device = resolve(model), device_of(CPU, gpu)
    context = min(8_192, facts.max_positions)
    said = smallest(facts, device, context, batch, gpus)
    assert said.found is not None and said.found.gpus >= gpus
    for best in filter(None, (said.found, said.enough)):
        arm = as_an_arm(model, best.choices, device, context, batch, best.gpus)
        assert not arm.blocked and arm.needed_bytes == best.needed_bytes <= best.room_bytes, best.choices
        curve = dict(best.curve)
        assert curve[context] == best.needed_bytes
        assert list(curve) == sorted(curve) and max(curve) == facts.max_positions
        halfway = sorted(curve)[len(curve) // 2]
        assert curve[halfway] == as_an_arm(model, best.choices, device, halfway, batch, best.gpus).needed_bytes
        assert context <= best.max_context <= facts.max_positions
        if best.max_context < facts.max_positions:
            longer = as_an_arm(model, best.choices, device, best.max_context + 1, batch, best.gpus)
            assert longer.needed_bytes > best.room_bytes


@pytest.mark.parametrize("gpu", ["RTX-4090", "L4"])
def test_it_is_the_change_that_compare_offers(gpu: str) -> None:
    facts, device = resolve("gpt-oss-20b"), device_of(CPU, gpu)
    work = Workload(prompt_tokens=8_191, max_new_tokens=1)
    (blocked,) = check(make_config("gpt-oss-20b", {}), facts, device.machine, work).blocked
    found = smallest(facts, device, 8_192).found
    assert found is not None and found.choices == blocked.fix


def said(model: str, gpu: str | None = None, machine: Any = CPU, **more: Any) -> str:
    return answer(fit(model, device_of(machine, gpu), **more))


def test_the_answer_in_words() -> None:
    assert said("Llama-3-8B", "H100-SXM") == (
        "Llama 3 8B fits on one H100-SXM as it is (bfloat16): 17.8 of 79.6 GiB at 8,192 tokens."
    )
    assert said("gpt-oss-20b", "RTX-4090").startswith(
        "gpt-oss 20B fits on one RTX-4090 with Prefill chunks of 2,048: 20.3 of 24.0 GiB at 8,192 tokens, up to 14,"
    )
    tight = said("Llama-3-70B", "H100-SXM")
    assert "74.0 of 79.6 GiB at 8,192 tokens, which is tight" in tight
    assert tight.endswith("As it is (bfloat16) it needs 138 GiB, or 2 such GPUs (tensor-2) with 70.4 GiB of each.")
    assert " fits on one A10 in none of the arrangements tried. It fits on 8 x A10 (tensor-8) as it is " in said(
        "Llama-3-70B", "A10"
    )
    mixture = said("Qwen3-30B-A3B", "RTX-4090")
    assert "tried. Experts are 95% of its weights, and no quantization here packs them. It fits on 4 x" in mixture
    assert "Experts are" not in said("gpt-oss-120b", "RTX-4090"), "MXFP4 packs them"
    assert said("pocket").startswith("Pocket, 5M fits on this machine as it is (")
    found = fit("gpt-oss-20b", device_of(CPU, "RTX-4090"))
    assert f"the first that fits of {found.smallest.tried} arrangements" in remarks(found)[0]
    shown = answer_view(found)
    assert (shown.words, shown.arm, shown.gpus) == (answer(found), "prefill=chunks-2048", 1)
    assert [curve.title for curve in shown.curves] == ["Prefill chunks of 2,048", "as it is"]


def test_what_lacks_a_package_here_would_fit() -> None:
    bare = replace(CPU, free_bytes=10 * GIB, packages=(("torch", "2.13.0"), ("transformers", "5.22.2")))
    words = said("Llama-3-8B", machine=bare)
    assert words.startswith("Llama 3 8B would fit on this machine with ") and "It cannot run here as it is: " in words
    assert "fits on this machine with " in said("Llama-3-8B", machine=replace(CPU, free_bytes=10 * GIB))


def test_a_checkpoint_whose_library_is_not_here_would_fit_as_it_is(tmp_path: Path) -> None:
    config = {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8}
    packed = {"quantization_config": {"quant_method": "gptq", "bits": 4}, "dtype": "float16"}
    (tmp_path / "config.json").write_text(json.dumps(config | packed))
    bare = replace(CPU, packages=(("torch", "2.13.0"), ("transformers", "5.22.2")))
    shown = answer_view(fit(str(tmp_path), device_of(bare)))
    assert (shown.arm, [curve.title for curve in shown.curves]) == ("", ["as it is"])
    assert " would fit on this machine as it is (gptq): " in shown.words and "pip install optimum" in shown.words


def test_packed_weights_that_would_be_dequantized_here_would_fit_elsewhere() -> None:
    gpus = (replace(H200.gpus[0], free_bytes=24 * GIB, capability=(7, 5)),)
    words = said("gpt-oss-20b", machine=replace(H200, gpus=gpus, hub_offline=True))
    assert " would fit on this machine with Prefill chunks " in words and "neither in the Hub cache" in words


def test_this_machine_is_given_no_more_gpus_than_it_has() -> None:
    def smallest_on(gpus: int) -> Arrangement | None:
        of = tuple(replace(H200.gpus[0], index=at, free_bytes=6 * GIB) for at in range(gpus))
        return smallest(resolve("Llama-3-8B"), device_of(replace(H200, gpus=of)), 8_192).found

    assert smallest_on(1) is None and smallest_on(2) is None
    shared = smallest_on(4)
    assert shared is not None and shared.choices == {"cache": "offloaded", "parallel": "tensor-4"}
