"""A decoder layer tells attention what the product after it needs."""

from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
import torch
import transformers.activations  # noqa: F401  (before triton is replaced)

from tests.support.kernels_on_cpu import kernels_on_cpu

SIDE = 8


def _as_it_is(*_: Any, **__: Any) -> Callable[[Any], Any]:
    """In place of torch's operators: the function itself."""

    def keep(function: Any) -> Any:
        function.register_fake = lambda fake: fake
        return function

    return keep


@pytest.fixture(scope="module")
def ops() -> Iterator[Any]:
    with mock.patch.object(torch.library, "custom_op", _as_it_is), kernels_on_cpu("ops") as loaded:
        yield loaded.ops


@pytest.mark.parametrize(
    ("kind", "needs"),
    [
        (torch.uint8, True),
        (torch.int32, False),
        (torch.int8, False),
        (torch.float8_e4m3fn, False),
        (torch.bfloat16, False),
    ],
)
def test_only_products_of_bitsandbytes_4_bits_are_left_l1(
    ops: Any, kind: torch.dtype, needs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(ops, "attend", lambda *_, l1_next, **__: asked.append(l1_next))
    monkeypatch.setattr(ops, "sizes", lambda _: (SIDE, SIDE))
    monkeypatch.setattr(ops, "to_prefetch", lambda _: None)
    monkeypatch.setattr(ops, "SUMMED", False)
    for name in ("product", "add"):
        monkeypatch.setattr(ops, name, lambda *_, **__: None)
    hidden, weights = torch.zeros(SIDE), [torch.zeros(SIDE, SIDE).to(kind) for _ in range(4)]
    none: list[None] = [None] * 4
    ops.decoder_layer(
        hidden,
        None,
        None,
        hidden,
        hidden,
        None,
        None,
        hidden,
        hidden,
        weights,
        none,
        none,
        none,
        none,
        [None, None],
        1e-6,
        1.0,
    )
    assert asked == [needs]
