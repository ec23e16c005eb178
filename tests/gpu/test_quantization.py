"""What packed weights compute, and what stays reserved while they are packed.

MXFP4 runs on the Hub's kernels if they are in its cache or in
`LOCAL_KERNELS=kernels-community/gpt-oss-triton-kernels=FOLDER`, else on ours.
"""

import json
import time
from pathlib import Path

import pytest

from tests.support.refusals import skip_or_fail
from tokendyno.backend import hardware
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.models import resolve
from tokendyno.backend.plan import LoadPlan

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("choice", "rounded"),
    [
        ("bnb-int8", 0.015),
        ("torchao-int8", 0.015),
        ("quanto-int8", 0.015),
        ("torchao-fp8", 0.04),
        ("torchao-int4", 0.13),
        ("bnb-nf4", 0.13),
    ],
)
def test_packed_weights_are_those_of_the_dense_model_and_it_computes_with_them(choice: str, rounded: float) -> None:
    """Each matrix, read out by multiplying the unit matrix with it, differs by no more than its format rounds. With the
    matrices that were read out the dense model answers as the packed one, whose activations may be rounded, too."""
    if choice.startswith("quanto"):
        pytest.importorskip("optimum.quanto")
    import torch

    from tokendyno.backend.plan import LoadPlan
    from tokendyno.backend.worker.load.device import Observed
    from tokendyno.backend.worker.load.random_weights import load_as_checkpoint, random_model

    source = resolve("random:Qwen3-0.6B").source
    ids = torch.tensor([[5, 6, 7, 8]], device="cuda")
    dense = random_model(source.config_json, "auto", None, "cuda")
    packed = load_as_checkpoint(LoadPlan(source, device="cuda", quantization=choice), Observed())
    with torch.inference_mode():
        worst, read = 0.0, 0
        for name, module in dense.named_modules():
            if not isinstance(module, torch.nn.Linear) or name == "lm_head":
                continue
            unit = torch.eye(module.in_features, dtype=torch.bfloat16, device="cuda")
            weight = packed.get_submodule(name)(unit).T
            worst = max(worst, float((weight.float() - module.weight.float()).norm() / module.weight.float().norm()))
            module.weight.copy_(weight)
            read += 1
        answer, expected = packed(ids).logits.float(), dense(ids).logits.float()
    apart = float((answer - expected).norm() / expected.norm())
    print(f"{choice}: {read} matrices, the farthest {worst:.4f} away; the answer {apart:.4f}")
    assert read == 7 * dense.config.num_hidden_layers
    assert 0 < worst < rounded
    assert apart < 0.1


@pytest.mark.parametrize("choice", ["bnb-int8", "torchao-int8", "quanto-int8", "bnb-nf4"])
def test_nothing_dense_stays_reserved_between_quantized_random_weights(choice: str) -> None:
    """As with a checkpoint, whose tensors are copied from host memory one by one."""
    if choice.startswith("quanto"):
        pytest.importorskip("optimum.quanto")
    import torch

    from tokendyno.backend.plan import LoadPlan
    from tokendyno.backend.worker.load.device import Observed
    from tokendyno.backend.worker.load.random_weights import load_as_checkpoint

    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    observed, begin_s = Observed(), time.perf_counter()
    model = load_as_checkpoint(
        LoadPlan(resolve("random:Llama-3-8B").source, device="cuda", quantization=choice), observed
    )
    torch.cuda.synchronize()
    took_s = time.perf_counter() - begin_s
    torch.cuda.empty_cache()
    held, reserved = torch.cuda.memory_allocated() - before[0], torch.cuda.memory_reserved() - before[1]
    print(
        f"{choice}: {held / 2**20:,.0f} MiB of tensors, {reserved / 2**20:,.0f} reserved, {took_s:.1f} s, of them "
        f"{observed.stages_s}, {observed.note or 'no note'}"
    )
    del model
    assert observed.note == "", "this machine has no room for what is asked here"
    assert reserved < 1.15 * held


def pocket_where_mxfp4_runs(width: int, folder: Path) -> LoadPlan:
    """Random weights in pocket's shape, but for the experts' width; skip with the verdict's reason where MXFP4 kernels
    cannot run."""
    config = json.loads(resolve("random:pocket").source.config_json)
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": width}))
    facts = resolve(f"random:{folder}")
    checked = check(make_config("m", {"quantization": "mxfp4"}), facts, hardware.detect(), Workload("x"))
    if checked.planned["quantization"] != "mxfp4":
        reason = next(v.reason for v in checked.verdicts if v.axis == "quantization")
        skip_or_fail("quantization=mxfp4", reason, "random:pocket")
    return checked.plan.load


@pytest.mark.parametrize("width", [96, 128])
def test_mxfp4_stays_quantized_and_answers_as_its_unpacked_self(width: int, tmp_path: Path) -> None:
    """The same random blocks, once through the kernels (on Hopper the Hub's take a width of 128, ours take 96) and once
    dequantized. A router that is rounded otherwise sends a token to other experts, and what attends to it differs too:
    texts are short, and few may differ by more."""
    import torch

    from tokendyno.backend.worker.load.device import Observed
    from tokendyno.backend.worker.load.loader import apply_patches
    from tokendyno.backend.worker.load.random_weights import load_as_checkpoint

    plan = pocket_where_mxfp4_runs(width, tmp_path)
    ids = torch.arange(5, 69, device="cuda").view(32, 2)
    answers = []
    with torch.inference_mode():
        for choice in ("mxfp4", "mxfp4-dequantized"):
            experts = plan.experts if choice == "mxfp4" else None
            how = LoadPlan(plan.source, device="cuda", quantization=choice, experts=experts)
            model = load_as_checkpoint(how, Observed())
            apply_patches(model, how)
            answers.append(model(ids).logits.float())
    apart = ((answers[0] - answers[1]).norm(dim=-1) / answers[1].norm(dim=-1)).flatten()
    print("positions, by how far they are apart:", [round(float(one), 4) for one in apart.sort().values])
    assert apart.median() < 0.03
    assert (apart > 0.05).sum() <= len(apart) / 4
