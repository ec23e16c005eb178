"""Attention to a cache that its programs do not hold at once is that of double precision."""

from typing import Any

import pytest

from tests.gpu.test_steps import recorded
from tests.support.rotation import rotated

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

SHAPES = [  # heads, queries each, size, slots, filled, texts
    (8, 4, 128, 8100, 8000, 1),
    (8, 4, 128, 9000, 17, 1),
    (8, 8, 64, 4500, 1000, 1),
    (2, 5, 32, 9000, 8999, 3),
    (1, 1, 64, 700, 699, 1),
    (3, 15, 128, 3000, 2000, 2),
]


def case(shape: tuple[int, ...], dtype: str) -> dict[str, Any]:
    """What a call gets; the second of several texts begins with padding."""
    import torch

    heads, group, size, slots, used, texts = shape
    torch.manual_seed(slots)

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=getattr(torch, dtype))

    filled = torch.zeros(texts, slots, dtype=torch.bool, device="cuda")
    filled[:, : used + 1] = True
    filled[1:2, : used // 3] = False
    return {
        "qkv": random(texts * (group + 2) * heads * size),
        "cos": random(texts, size),
        "sin": random(texts, size),
        "keys": random(texts, heads, slots, size),
        "values": random(texts, heads, slots, size),
        "slot": torch.tensor([used], device="cuda"),
        "filled": filled,
    }


def expected_of(
    given: dict[str, Any], keys: Any, values: Any, norms: Any, sinks: Any, turn: tuple[int, bool] | None = None
) -> tuple[Any, Any, Any]:
    """What attention gives, by the cache as it is after the call, and the new keys and values, in double precision.
    turn: as of `rotated`."""
    import torch

    texts, heads, slots, size = keys.shape
    group = given["qkv"].numel() // texts // size // heads - 2
    rows = given["qkv"].double().view(texts, -1, size).split([group * heads, heads, heads], 1)
    turned = []
    for part, norm in zip(rows[:2], norms, strict=True):
        if norm is not None:
            part = part * torch.rsqrt(part.pow(2).mean(-1, keepdim=True) + 1e-6) * norm.double()
        cos, sin = (given[name].double()[:, None] for name in ("cos", "sin"))
        turned.append(rotated(part, cos, sin, *(turn or ())))
    query = turned[0].view(texts, heads, group, size)
    scores = torch.einsum("xhgd,xhtd->xhgt", query, keys.double()) * size**-0.5
    scores = scores.masked_fill(~given["filled"][:, None, None], -torch.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks.double().view(1, heads, group, 1).expand(texts, -1, -1, -1)], -1)
    weights = scores.softmax(-1)[..., :slots]
    return torch.einsum("xhgt,xhtd->xhgd", weights, values.double()).reshape(-1), turned[1], rows[2]


def attended(kernels: Any, given: dict[str, Any], norms: Any, sinks: Any, **more: Any) -> Any:
    """more: scales of keys and values in 8 bits; what is rotated."""
    import torch

    texts, heads, _, size = given["keys"].shape
    group = given["qkv"].numel() // texts // size // heads - 2
    out = torch.full((texts * group * heads * size,), float("nan"), device="cuda", dtype=given["qkv"].dtype)
    turns = torch.zeros(256, dtype=torch.int32, device="cuda")
    kernels.attention.attend(
        *(given[name] for name in ("qkv", "cos", "sin", "keys", "values", "slot", "filled")),
        out,
        size**-0.5,
        *norms,
        1e-6,
        turns=turns,
        sinks=sinks,
        **more,
    )
    assert not turns.any()
    return out


def counted(module: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An entry for each call of the kernel of this module."""
    calls: list[int] = []
    kernel = module.KERNEL

    class Counted:
        def __getitem__(self, grid: tuple[int, ...]) -> Any:
            calls.append(1)
            return kernel[grid]

    monkeypatch.setattr(module, "KERNEL", Counted())
    return calls


def away(found: Any, expected: Any) -> float:
    return float((found.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_long_attention_is_that_of_double_precision(
    kernels: Any, shape: tuple[int, ...], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    heads, group, size, _, used, _ = shape
    monkeypatch.setattr(kernels.attention, "BY_WARPS", False)
    calls = counted(kernels.attention_long, monkeypatch)
    given = case(shape, dtype)
    before = given["keys"].clone(), given["values"].clone()
    norms = tuple(torch.randn(size, device="cuda", dtype=getattr(torch, dtype)) for _ in range(2))
    sinks_of_heads, angles = 3 * torch.randn(group * heads, device="cuda"), (given["cos"], given["sin"])
    for which, sinks, turn in (
        (norms, None, (size, False)),
        ((None, None), sinks_of_heads, (size, False)),
        (norms, None, (size // 2, True)),
        ((None, None), None, (3 * size // 4, False)),
    ):
        given |= {name: one[:, : turn[0]].contiguous() for name, one in zip(("cos", "sin"), angles, strict=True)}
        out = attended(kernels, given, which, sinks, rotated=turn[0], pairs=turn[1])
        expected, key, value = expected_of(given, given["keys"], given["values"], which, sinks, turn)
        assert away(out, expected) < (1e-2 if dtype == "bfloat16" else 2e-3)
        assert away(given["keys"][:, :, used], key) < 1e-2 and away(given["values"][:, :, used], value) < 1e-2
        for held, old in zip((given["keys"], given["values"]), before, strict=True):
            held[:, :, used] = old[:, :, used]
            assert torch.equal(held, old)
    assert len(calls) == 4


def test_parts_of_long_attention_meet_in_many_replays(kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last program of a head combines them: the same numbers, however the programs end."""
    import torch

    given = case((8, 4, 128, 3000, 2500, 1), "bfloat16")
    turns = torch.zeros(256, dtype=torch.int32, device="cuda")
    outs = torch.zeros(12, 4 * 8 * 128, device="cuda", dtype=torch.bfloat16)
    wrong = torch.zeros((), dtype=torch.long, device="cuda")
    names = ("qkv", "cos", "sin", "keys", "values", "slot", "filled")

    def run() -> None:
        for out in outs:
            kernels.attention.attend(*(given[name] for name in names), out, 128**-0.5, turns=turns)
        wrong.add_((outs != outs[0]).sum() + turns.sum() + outs.isnan().sum())

    graph = recorded(run)
    for _ in range(200):
        given["qkv"].normal_()
        graph.replay()
    assert int(wrong) == 0
