"""Kernels from the local folders that `tools/local_kernels.py` makes: FlashAttention 2 and 3, held against attention in
float64, and Liger's RMSNorm, against a model's own."""

from typing import Any

import pytest

from tokendyno.backend.hardware.kernel_packages import local_overrides
from tokendyno.backend.optimizations.axes.attention import HUB_FA2, HUB_FA3

pytestmark = pytest.mark.gpu
HEADS, KV_HEADS, D = 8, 2, 64
LENGTHS = (1, 37, 200)
PAGE = 32
LIGER = "kernels-community/liger-kernels"


@pytest.fixture(scope="module", params=[(HUB_FA2, 4), (HUB_FA3, 1)], ids=["2", "3"])
def kernel(request: pytest.FixtureRequest) -> Any:
    name, version = request.param
    if name not in local_overrides():
        pytest.skip(f"LOCAL_KERNELS names no folder for {name} (see tools/local_kernels.py)")
    from kernels import get_kernel

    return get_kernel(name, version=version)


def random(*shape: int) -> Any:
    import torch

    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def exact(q: Any, k: Any, v: Any, window: int = 0) -> Any:
    """Causal attention of one sequence: q (S, heads, D); k, v (T, KV heads, D); queries are the last S of T tokens."""
    import torch

    q, k, v = (one.double().transpose(0, 1) for one in (q, k, v))
    k, v = (one.repeat_interleave(HEADS // KV_HEADS, 0) for one in (k, v))
    rows = torch.arange(k.shape[1] - q.shape[1], k.shape[1], device="cuda")[:, None]
    columns = torch.arange(k.shape[1], device="cuda")
    seen = (columns <= rows) & (columns > rows - (window or k.shape[1] + 1))
    scores = (q @ k.transpose(1, 2) * D**-0.5).masked_fill(~seen, float("-inf"))
    return (scores.softmax(-1) @ v).transpose(0, 1)


def near(found: Any, wanted: Any) -> bool:
    return bool((found.double() - wanted).norm() < 0.01 * wanted.norm())


@pytest.mark.parametrize("window", [0, 24])
def test_sequences_of_different_lengths(kernel: Any, window: int) -> None:
    import torch

    parts = [(random(n, HEADS, D), random(n, KV_HEADS, D), random(n, KV_HEADS, D)) for n in LENGTHS]
    q, k, v = (torch.cat(one) for one in zip(*parts, strict=True))
    starts = torch.tensor([0, *LENGTHS], device="cuda").cumsum(0).int()
    sizes = (window - 1, window - 1) if window else (-1, -1)
    found = kernel.flash_attn_varlen_func(
        q,
        k,
        v,
        cu_seqlens_q=starts,
        cu_seqlens_k=starts,
        max_seqlen_q=max(LENGTHS),
        max_seqlen_k=max(LENGTHS),
        causal=True,
        window_size=sizes,
    )
    assert near(found, torch.cat([exact(*part, window) for part in parts]))


@pytest.mark.parametrize("new", [1, 40])
def test_a_batch_of_one_length(kernel: Any, new: int) -> None:
    import torch

    q, k, v = random(3, new, HEADS, D), random(3, 40, KV_HEADS, D), random(3, 40, KV_HEADS, D)
    found = kernel.flash_attn_func(q, k, v, causal=True)
    assert near(found, torch.stack([exact(q[i], k[i], v[i]) for i in range(3)]))


def test_pages_are_written_and_read_and_rows_of_padding_write_nothing_of_their_own(kernel: Any) -> None:
    import torch

    pages = [-(-(n + 1) // PAGE) for n in LENGTHS]
    order = torch.randperm(sum(pages), device="cuda").int()
    tables = torch.zeros(len(LENGTHS) + 1, max(pages), device="cuda", dtype=torch.int32)
    for i, held in enumerate(order.split(pages)):
        tables[i, : len(held)] = held
    tables[-1] = -1
    keys, values = (random(sum(pages), PAGE, KV_HEADS, D) for _ in range(2))
    before = keys.clone(), values.clone()
    q, k, v = (random(len(LENGTHS) + 1, 1, heads, D) for heads in (HEADS, KV_HEADS, KV_HEADS))
    lengths = torch.tensor([*LENGTHS, -1], device="cuda").int()
    found = kernel.flash_attn_with_kvcache(
        q, keys, values, k, v, cache_seqlens=lengths, block_table=tables, causal=True
    )
    for i, n in enumerate(LENGTHS):
        own = [cache[tables[i, : pages[i]].long()].flatten(0, 1)[: n + 1] for cache in (keys, values)]
        assert torch.equal(own[0][-1], k[i, 0]) and torch.equal(own[1][-1], v[i, 0])
        assert near(found[i], exact(q[i], *own))
    changed = sum(int((now != then).any(-1).any(-1).sum()) for now, then in zip((keys, values), before, strict=True))
    assert changed == 2 * len(LENGTHS)


def test_ligers_norm_gives_the_logits_of_the_models_own() -> None:
    import torch

    from tests.gpu.test_kernels import fresh
    from tests.support.tiny_models import build
    from tokendyno.backend.plan import Plan
    from tokendyno.backend.worker.load.loader import apply_patches
    from tokendyno.backend.worker.prove.observation import Observation
    from tokendyno.backend.worker.witness import find

    if LIGER not in local_overrides():
        pytest.skip(f"LOCAL_KERNELS names no folder for {LIGER} (see tools/local_kernels.py)")
    model, ids = build("llama", device="cuda"), torch.arange(5, 17, device="cuda")[None]
    with torch.inference_mode():
        wanted = model(ids).logits
        apply_patches(model, fresh("hub"))
        torch.testing.assert_close(model(ids).logits, wanted, rtol=1e-3, atol=1e-4)
    finding = find("kernels", Observation(model, None, Plan(fresh("hub"))))
    assert (finding.effective, finding.proof) == ("hub", f"9 x RMSNorm by {LIGER} (LOCAL_KERNELS)")
