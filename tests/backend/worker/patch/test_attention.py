"""Grouped-query attention without copied heads gives the numbers and the text of sdpa, on every architecture."""

import itertools
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from tests.support.tiny_models import CONFIGS, build
from tokendyno.backend.worker.patch import attention

GROUPED = [name for name in CONFIGS if name != "gpt_oss"]  # whose sinks sdpa cannot have


@pytest.fixture(autouse=True, scope="module")
def registered() -> None:
    attention.register_grouped_attention()


def tensors(heads: int, groups: int, places: int, dtype: str = "float32", batch: int = 2) -> Any:
    """One query, keys, values and a mask that excludes some slots."""
    torch.manual_seed(heads * places)
    number = getattr(torch, dtype)
    query = torch.randn(batch, heads, 1, 16, dtype=number)
    keys, values = (torch.randn(batch, heads // groups, places, 16, dtype=number) for _ in range(2))
    mask = torch.rand(batch, 1, 1, places) > 0.4
    mask[..., 0] = True
    return query, keys, values, mask


@pytest.mark.parametrize(("dtype", "nearness"), [("float32", 1e-6), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(("heads", "groups"), [(8, 4), (4, 2), (6, 6)])
def test_attention_of_one_query_is_attention(heads: int, groups: int, added: bool, dtype: str, nearness: float) -> None:
    """What runs on CUDA for a single query with a mask."""
    query, keys, values, mask = tensors(heads, groups, 9, dtype)
    expected = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask, enable_gqa=True)
    if added:
        mask = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(~mask, torch.finfo(query.dtype).min)
    out = attention.one_query(query, keys, values, mask, 16**-0.5)
    assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
    torch.testing.assert_close(out, expected, atol=nearness, rtol=0)


class Heads(TorchFunctionMode):  # type: ignore[misc]
    """Records how many key heads sdpa gets, and whether there is a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[int, bool]] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.nn.functional.scaled_dot_product_attention:
            self.seen.add((args[1].shape[1], (kwargs or {}).get("attn_mask") is not None))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("architecture", "cache"), [*zip(GROUPED, itertools.cycle(["static", "dynamic"]))])
def test_its_text_is_that_of_sdpa_and_it_copies_no_head(architecture: str, cache: str) -> None:
    """Two rows, one of them padded, past the window of 8: masks of every kind."""
    ids = torch.arange(5, 17)[None].repeat(2, 1)
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    kwargs: dict[str, Any] = {
        "attention_mask": mask,
        "max_new_tokens": 24,
        "do_sample": False,
        "cache_implementation": cache,
    }
    plain, grouped = (build(architecture, name) for name in ("sdpa", "sdpa-gqa"))
    expected = plain.generate(ids, **kwargs)
    with Heads() as heads:
        new_ids = grouped.generate(ids, **kwargs)
    assert torch.equal(new_ids, expected)
    assert len(set(new_ids[0].tolist())) > 5, "a text that says nothing"
    assert heads.seen == {(getattr(grouped.config, "num_key_value_heads", 4), True)}


def test_sdpa_itself_copies_heads_where_there_is_a_mask() -> None:
    with Heads() as heads:
        build("llama", "sdpa").generate(torch.tensor([[5, 6]]), max_new_tokens=3, cache_implementation="static")
    assert (4, True) in heads.seen


@pytest.mark.parametrize("more", [{"softcap": 30.0}, {"position_bias": torch.zeros(1, 8, 1, 9)}])
def test_unusual_arguments_fall_back_to_sdpa(more: dict[str, Any]) -> None:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    module = type("Module", (), {"num_key_value_groups": 4, "is_causal": True})()
    query, keys, values, mask = tensors(8, 4, 9, batch=1)
    outcomes = []
    for function in (sdpa_attention_forward, attention.grouped_attention):
        try:
            outcomes.append(function(module, query, keys, values, mask, **more)[0])
        except ValueError as error:
            outcomes.append(str(error))
    assert torch.equal(*outcomes) if torch.is_tensor(outcomes[0]) else outcomes[0] == outcomes[1]
