"""Attention of one new token, by each of its kernels: run on a CPU, it is that of double precision."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import torch

from tests.support.kernels_on_cpu import Kernel, kernels_on_cpu

KERNELS = ("attention_by_warps", "attention", "attention_long")


class Shape(NamedTuple):
    """slot: of the new token; filled: the others that are, up to it, all of a ring, or some of those up to it."""

    heads: int
    queries: int  # of a KV head
    size: int
    slots: int
    slot: int
    filled: str = "before"
    texts: int = 1


SHAPES = [
    Shape(2, 2, 64, 300, 250),
    Shape(2, 2, 64, 300, 2),
    Shape(1, 2, 64, 200, 128),  # the first of a program's slots
    Shape(2, 3, 64, 300, 130, "ring"),
    Shape(2, 3, 64, 300, 250, "some"),
    Shape(1, 1, 128, 400, 399),
    Shape(2, 1, 64, 40, 0),
    Shape(1, 2, 128, 500, 127, texts=2),
]


@pytest.fixture(scope="module")
def kernels() -> Iterator[Any]:
    with kernels_on_cpu("attention", "by_warps", "long", "long_parts", "carveout") as loaded:
        yield loaded


def use(kernels: Any, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the shape and number format; long caches in several blocks a program."""
    monkeypatch.setattr(kernels.attention, "BY_WARPS", kernel == "attention_by_warps")
    monkeypatch.setattr(kernels.attention, "LONG", kernel == "attention_long")
    monkeypatch.setattr(kernels.long, "fits", lambda *_: True)
    monkeypatch.setattr(kernels.long, "BLOCK", 16)
    monkeypatch.setattr(kernels.long, "MOST_PROGRAMS", 4)


class Given(NamedTuple):
    """Of a call, and what it should give: (texts, heads, queries, size), and the new keys and values."""

    qkv: Any
    cos: Any
    sin: Any
    keys: Any
    values: Any
    slot: Any
    filled: Any
    q_norm: Any
    k_norm: Any
    sinks: Any

    def attended(self, offset: float) -> tuple[Any, Any, Any]:
        query, key, value = self.states(offset)
        keys, values = self.keys.double().clone(), self.values.double().clone()
        keys[:, :, self.slot], values[:, :, self.slot] = key[:, :, None], value[:, :, None]
        return self.mixed(query, keys, values), key, value

    def states(self, offset: float) -> tuple[Any, Any, Any]:
        """Queries (texts, heads * queries, size), the new keys and values."""
        texts, heads, _, size = self.keys.shape
        rows = self.qkv.double().view(texts, -1, size)
        groups = rows.shape[1] // heads - 2
        query, key, value = rows.split([groups * heads, heads, heads], 1)
        return self.turned(query, self.q_norm, offset), self.turned(key, self.k_norm, offset), value

    def mixed(self, query: Any, keys: Any, values: Any) -> Any:
        texts, heads, slots, size = keys.shape
        scores = torch.einsum("xhgd,xhtd->xhgt", query.view(texts, heads, -1, size), keys) * size**-0.5
        scores = scores.masked_fill(~self.filled[:, None, None], -torch.inf)
        if self.sinks is not None:
            sinks = self.sinks.double().view(1, heads, -1, 1).expand(texts, -1, -1, -1)
            scores = torch.cat([scores, sinks], -1)
        return torch.einsum("xhgt,xhtd->xhgd", scores.softmax(-1)[..., :slots], values)

    def turned(self, vectors: Any, norm: Any, offset: float) -> Any:
        size = vectors.shape[-1]
        if norm is not None:
            shrink = torch.rsqrt(vectors.pow(2).mean(-1, keepdim=True) + 1e-6)
            vectors = vectors * shrink * (norm.double() + offset)
        if self.cos is None:
            return vectors
        cos, sin = (one.double().repeat(1, size // one.shape[-1])[:, None] for one in (self.cos, self.sin))
        return vectors * cos + torch.cat([-vectors[..., size // 2 :], vectors[..., : size // 2]], -1) * sin


def given(shape: Shape, dtype: Any = torch.float32, angles: str = "whole", normed: bool = True) -> Given:
    """The second of several texts begins with padding. Half of the angles come with sinks, as in gpt-oss."""
    torch.manual_seed(shape.slots + shape.slot)

    def random(*shape: int) -> Any:
        return torch.randn(*shape).to(dtype)

    heads, queries, size, slots, slot, which, texts = shape
    filled = (torch.arange(slots) <= slot).expand(texts, -1).clone()
    if which == "ring":
        filled[:] = True
    if which == "some":
        filled &= (torch.rand(texts, slots) < 0.6) | (torch.arange(slots) == slot)
    filled[1:2, : slot // 3] = False
    count = {"whole": size, "halves": size // 2, "none": 0}[angles]
    cos, sin = (random(texts, count) if count else None for _ in range(2))
    keys, values = (random(texts, heads, slots, size) for _ in range(2))
    q_norm, k_norm = (random(size) if normed else None for _ in range(2))
    sinks = 3 * random(queries * heads) if angles == "halves" else None
    qkv = random(texts * (queries + 2) * heads * size)
    return Given(qkv, cos, sin, keys, values, torch.tensor([slot]), filled, q_norm, k_norm, sinks)


def error(
    kernels: Any,
    kernel: str,
    asked: Given,
    folded: bool = True,
    offset: float = 0.0,
    splits: int = 0,
) -> float:
    """Relative, of what is attended to; everything else is checked here. splits: parts of the slots, 0 as they come."""
    before = asked.keys.clone(), asked.values.clone()
    expected, *new = asked.attended(offset)
    out = torch.full((expected.numel(),), float("nan"), dtype=asked.qkv.dtype)
    turns = torch.zeros(64, dtype=torch.int32) if folded else None
    Kernel.launched.clear()
    kernels.attention.attend(
        *asked[:7],
        out,
        asked.keys.shape[-1] ** -0.5,
        asked.q_norm,
        asked.k_norm,
        1e-6,
        turns=turns,
        sinks=asked.sinks,
        offset=offset,
        splits=splits,
    )
    assert Kernel.launched[0] == f"tokendyno_{kernel}"
    assert turns is None or not turns.any()
    for held, old, states in zip((asked.keys, asked.values), before, new, strict=True):
        assert torch.allclose(held[:, :, int(asked.slot)].double(), states, rtol=1e-2, atol=1e-4)
        old[:, :, asked.slot] = held[:, :, asked.slot]
        assert torch.equal(held, old)
    return float((out.double() - expected.reshape(-1)).norm() / expected.norm())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kernel", KERNELS)
def test_attention_is_that_of_double_precision(
    kernels: Any, kernel: str, shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(kernels, kernel, monkeypatch)
    for angles, normed, folded in (("whole", False, True), ("halves", False, False), ("none", False, True)):
        assert error(kernels, kernel, given(shape, angles=angles, normed=normed), folded) < 1e-5, angles
    assert error(kernels, kernel, given(shape), offset=1.0) < 1e-5


@pytest.mark.parametrize(("kernel", "shape"), [
    ("attention_by_warps", Shape(2, 3, 128, 500, 400)), ("attention", Shape(1, 4, 256, 100, 60)),
    ("attention_long", Shape(2, 4, 64, 500, 400)), ("attention_long", Shape(1, 8, 32, 1250, 20)),
    ("attention_by_warps", Shape(8, 2, 64, 1000, 3)), ("attention_long", Shape(8, 2, 64, 1100, 3)),
])  # fmt: skip
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_shape_goes_to_its_kernel_and_is_rounded_in_its_format(
    kernels: Any, kernel: str, shape: Shape, dtype: str
) -> None:
    assert error(kernels, kernel, given(shape, getattr(torch, dtype))) < {"bfloat16": 1e-2, "float16": 1e-3}[dtype]


@pytest.mark.parametrize("kernel", KERNELS)
def test_parts_meet_in_whichever_program_ends_last(kernels: Any, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use(kernels, kernel, monkeypatch)
    monkeypatch.setattr(Kernel, "backwards", True)
    assert error(kernels, kernel, given(Shape(2, 3, 64, 300, 250))) < 1e-5


@pytest.mark.parametrize("kernel", KERNELS)
def test_scores_that_tower_over_all_others_do_not_overflow(
    kernels: Any, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the first part, in the last and of the new token."""
    use(kernels, kernel, monkeypatch)
    for place in (3, 249, 250):
        asked = given(Shape(2, 2, 64, 300, 250), normed=False)
        asked.qkv.mul_(0.1)
        asked.keys[:, :, place] *= 2e4
        if place == 250:
            asked.qkv.mul_(1e3)
        assert error(kernels, kernel, asked) < 1e-5, place


@pytest.mark.parametrize("kernel", ["attention", "attention_long"])
def test_many_parts_of_many_queries_are_combined_a_few_at_a_time(
    kernels: Any, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(kernels, kernel, monkeypatch)
    monkeypatch.setattr(kernels.long, "MOST_PROGRAMS", 32)
    assert error(kernels, kernel, given(Shape(1, 8, 128, 600, 590)), splits=32) < 1e-5


def test_norms_over_all_heads_are_those_of_double_precision(kernels: Any) -> None:
    """As in Olmo 3: each head has a part of one norm."""
    shape = Shape(2, 2, 32, 100, 70)
    asked = given(shape)
    q_norm, k_norm = torch.randn(4 * 32), torch.randn(2 * 32)
    query, key, value = asked.qkv.view(-1, 32).split([4, 2, 2])
    normed = [
        (one * torch.rsqrt(one.pow(2).mean() + 1e-6) * norm.view(-1, 32))
        for one, norm in zip((query, key), (q_norm, k_norm), strict=True)
    ]
    plain = asked._replace(qkv=torch.cat([*normed, value]).reshape(-1), q_norm=None, k_norm=None)
    expected, *_ = plain.attended(0.0)
    out = torch.full((4 * 32,), float("nan"))
    kernels.attention.attend(*asked[:7], out, 32**-0.5, q_norm, k_norm, 1e-6)
    assert torch.allclose(out.double(), expected.reshape(-1), rtol=1e-4, atol=1e-5)
