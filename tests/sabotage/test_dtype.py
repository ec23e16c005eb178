"""dtype: a number format that only some layers have, or the weights alone, and products that are rounded."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from transformers.cache_utils import DynamicLayer

from tests.sabotage.saboteur import SHARES, Patch, in_layers, table, tests_of

PROJECTIONS = "q_proj", "k_proj", "v_proj", "o_proj"


def cast(dtype: torch.dtype) -> Callable[[Any], None]:
    """Hold the attention's weights in another format, and compute in it."""

    def change(layer: Any) -> None:
        for name in PROJECTIONS:
            module = getattr(layer.self_attn, name)
            own = module.weight.dtype
            module.to(dtype)
            module.register_forward_pre_hook(lambda _, given: (given[0].to(dtype),))
            module.register_forward_hook(lambda _, given, out, own=own: out.to(own))

    return change


def shares(what: str, change: Callable[[Any], None]) -> dict[str, Patch]:
    return {f"attention of {share} {what}": in_layers(share, change) for share in SHARES}


@contextmanager
def rounded() -> Iterator[None]:
    """torch may round factors of float32 products: to 16 bits on a CPU, to TF32 on a GPU."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def wide_cache() -> Iterator[None]:
    """Keys and values are kept in float32."""
    original = DynamicLayer.update

    def update(self: Any, keys: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
        cached = original(self, keys, values, *args, **kwargs)
        self.keys, self.values = self.keys.float(), self.values.float()
        return tuple(part.to(keys.dtype) for part in cached)

    with mock.patch.object(DynamicLayer, "update", update):
        yield


TO_FLOAT32 = shares("in another format", cast(torch.float32))
SABOTEURS = table(
    "dtype",
    {
        "auto": {"attention of one layer in another format": in_layers("one", cast(torch.bfloat16))},
        "bfloat16": {**TO_FLOAT32, "the KV cache in float32": wide_cache},
        "float16": TO_FLOAT32,
        "float32": {**shares("in another format", cast(torch.bfloat16)), "products may be rounded": rounded},
    },
)
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
