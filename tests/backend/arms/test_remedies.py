"""Changes that make an arm fit: the least harmful ones that do, whatever has to be combined."""

import pytest

from tests.support.machines import CPU
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.arms.remedies import Changes, least_harm, ways
from tokendyno.backend.config import Workload
from tokendyno.backend.fit.device import elsewhere
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations import all_axes


def chosen(*enough: Changes) -> Changes | None:
    """The remedy where only these changes make an arm fit, and each of their parts helps."""
    parts = {pair for changes in enough for pair in changes.items()}
    return least_harm(resolve("gpt-oss-20b"), ways(4), lambda some: _lacking(some, enough, parts))


def _lacking(some: Changes, enough: tuple[Changes, ...], parts: set[tuple[str, str]]) -> int:
    return 0 if some in enough else 9 - len(some.items() & parts)


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"parallel": "tensor-4"}, {"cache": "dynamic"}),
        ({"cache": "dynamic"}, {"cache": "offloaded"}),
        ({"cache": "offloaded"}, {"quantization": "bnb-int8"}),
        ({"dtype": "bfloat16"}, {"quantization": "bnb-int8"}),
        ({"dtype": "bfloat16", "cache": "offloaded"}, {"cache": "static-fp8"}),  # both, in 16 bits, before 8 bits
        ({"quantization": "mxfp4", "parallel": "tensor-2"}, {"quantization": "bnb-int8"}),
        ({"quantization": "bnb-int8"}, {"quantization": "bnb-nf4"}),
        ({"quantization": "bnb-nf4"}, {"quantization": "bnb-fp4", "parallel": "expert-2"}),
    ],
)
def test_less_is_lost_before_more(less: dict[str, str], more: dict[str, str]) -> None:
    assert chosen(less) == less and chosen(more) == more and chosen(more, less) == less


@pytest.mark.parametrize(
    ("model", "gpu", "gpus", "prompt", "fix"),
    [
        ("random:gpt-oss-120b", "A100-40GB", 2, 128, {"quantization": "mxfp4", "parallel": "tensor-2"}),
        ("gpt-oss-120b", "RTX-4090", 4, 128, {"parallel": "expert-4"}),  # 90 blocks cannot be split in 4
        ("gpt-oss-120b", "A100-40GB", 2, 8192, {"attention": "flex_attention", "parallel": "tensor-2"}),
        ("random:Mixtral-8x7B-v0.1", "A100-40GB", 4, 128, {"parallel": "tensor-4"}),
        ("random:Mixtral-8x7B-v0.1", "A100-40GB", 2, 128, {}),  # packed, its experts stay dense
        ("random:Llama-3-70B", "RTX-4090", 2, 128, {}),  # packed weights across ranks are refused
    ],
)
def test_what_one_change_does_not_make_fit_several_do(
    model: str, gpu: str, gpus: int, prompt: int, fix: dict[str, str]
) -> None:
    machine, work = elsewhere(CPU, gpu, gpus), Workload(prompt_tokens=prompt, max_new_tokens=64)
    assert machine is not None
    (too_large,) = check(make_config(model, {}), resolve(model), machine, work).blocked
    assert too_large.fix == fix
    if fix:
        assert not check(make_config(model, fix), resolve(model), machine, work).blocked


def test_the_default_loses_nothing_and_what_is_never_suggested_the_most() -> None:
    quantization = next(axis for axis in all_axes() if axis.name == "quantization")
    losses = [quantization.loss(name) for name in ("none", "bnb-int8", "bnb-nf4", "mxfp4-dequantized")]
    assert losses == sorted(losses) and losses[0] == 0 and len(set(losses)) == 4
