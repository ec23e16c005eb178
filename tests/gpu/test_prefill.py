"""Chunks of a prompt on a GPU: attention without a mask and without copied heads where `attention=sdpa-gqa` may."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.profiler import profile
from transformers import DynamicCache, StaticCache

from backend.worker.patch import attention
from tests.support.tiny_models import build

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]
FLASH = "aten::_scaled_dot_product_flash_attention"


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    attention.register_grouped_attention()
    yield


@pytest.mark.parametrize(("queries", "keys"), [(1, 9), (64, 64), (64, 300), (128, 129)])
@pytest.mark.parametrize(("heads", "groups"), [(8, 4), (4, 1)])
def test_a_chunk_attends_to_itself_and_what_was_before(heads: int, groups: int, queries: int, keys: int) -> None:
    torch.manual_seed(0)
    query = torch.randn(2, heads, queries, 64, dtype=torch.bfloat16, device="cuda")
    key, value = (torch.randn(2, heads // groups, keys, 64, dtype=torch.bfloat16, device="cuda") for _ in range(2))
    mask = torch.ones(queries, keys, dtype=torch.bool, device="cuda").tril(keys - queries)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        *(one.float() for one in (query, key, value)), attn_mask=mask, enable_gqa=True
    )
    made = attention.chunk_of_prompt(query, key, value, None)
    torch.testing.assert_close(made.float(), wanted, atol=2e-2, rtol=0)


@pytest.mark.parametrize("static", [False, True], ids=["growing", "static"])
@pytest.mark.parametrize(("padded", "flashes"), [(0, True), (3, False)])
@pytest.mark.parametrize("architecture", ["llama", "qwen3", "olmo3", "gemma3_text", "mistral"])
def test_hidden_states_are_those_of_one_pass(architecture: str, padded: int, flashes: bool, static: bool) -> None:
    """Padding and windows keep their masks: layers with full attention flash."""
    model = build(architecture, "sdpa-gqa", "bfloat16", "cuda")
    torch.manual_seed(1)
    ids = torch.randint(3, 97, (2, 45), device="cuda")
    mask = torch.ones_like(ids)
    mask[0, :padded] = 0
    at = (mask.cumsum(-1) - 1).clamp(min=0)

    def last(chunk: int) -> tuple[Any, int]:
        cache = StaticCache(model.config, 60) if static else DynamicCache(config=model.config)
        with torch.inference_mode(), profile() as seen:
            for begin in range(0, 45, chunk):
                end = min(45, begin + chunk)
                states = model.model(
                    input_ids=ids[:, begin:end], attention_mask=mask[:, :end], position_ids=at[:, begin:end],
                    past_key_values=cache,
                ).last_hidden_state[:, -1]  # fmt: skip
        return states.float(), sum(one.name == FLASH for one in seen.events())

    (whole, _), (chunks, calls) = last(45), last(20)
    full = sum(kind == "full_attention" for kind in getattr(model.config, "layer_types", None) or [])
    full = full if architecture in ("olmo3", "gemma3_text") else 0 if architecture == "mistral" else 4
    assert torch.nn.functional.cosine_similarity(whole, chunks, dim=-1).min() > 0.99
    assert (calls >= 2 * full) if flashes else calls == 0
