"""Prompts on a GPU: chunks that attend without a mask and without copied heads where `attention=sdpa-gqa` may, and
passes that are captured for each length."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.profiler import profile
from transformers import DynamicCache, StaticCache

from tests.gpu.test_own import prompt
from tests.support.decode_loop import NEW, Told, greedy
from tests.support.ledger import unsound
from tests.support.tiny_models import CONFIGS, WINDOW, build
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.patch import attention
from tokendyno.backend.worker.runners.token_loops import cached_tokens
from tools.bench.gpu.bench_cli import tell
from tools.bench.gpu.every import perform

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("ignore")]
CAPTURED = "cache=static,loop=own,cuda_graphs=manual,prefill=captured"
MORE = (
    "",
    ",attention=sdpa-gqa",
    ",compile=default",
    ",projections=fused,kernels=local",
    ",quantization=bnb-nf4",
    ",quantization=torchao-int8",
)
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
                    input_ids=ids[:, begin:end],
                    attention_mask=mask[:, :end],
                    position_ids=at[:, begin:end],
                    past_key_values=cache,
                ).last_hidden_state[:, -1]
        return states.float(), sum(one.name == FLASH for one in seen.events())

    (whole, _), (chunks, calls) = last(45), last(20)
    full = sum(kind == "full_attention" for kind in getattr(model.config, "layer_types", None) or [])
    full = full if architecture in ("olmo3", "gemma3_text") else 0 if architecture == "mistral" else 4
    assert torch.nn.functional.cosine_similarity(whole, chunks, dim=-1).min() > 0.99
    assert (calls >= 2 * full) if flashes else calls == 0


DENSE = [name for name in CONFIGS if name != "gpt_oss"]


@pytest.mark.parametrize("attention_name", [None, "eager", "sdpa-gqa"])
@pytest.mark.parametrize("architecture", DENSE)
def test_captured_prompts_give_the_text_of_generate(architecture: str, attention_name: str | None) -> None:
    """Each length twice, in an order in which graphs that share memory follow each other in turns."""
    model = build(architecture, attention_name, "float32", "cuda")
    for batch in (1, 3):
        cache = StaticSlotCache(model.config, 60)
        loop = DecodeLoop(model, 0, [], None, True, prefill_graphs=True)
        for tokens, padded in ((20, 0), (5, 0), (20, 4), (WINDOW, 0), (5, 0), (20, 0), (20, 7)):
            asked = prompt(tokens, batch, padded if batch > 1 else 0)
            with torch.inference_mode():
                cache.reset()
                made = loop.generate(asked.ids, asked.mask, cache, NEW, Told(), ignore_eos=True)
            assert torch.equal(made, greedy(model, asked)), (batch, tokens, padded)
            assert cached_tokens(cache) - int(cache.step) == tokens


@pytest.mark.parametrize("attention_name", ["sdpa", "sdpa-gqa"])
def test_a_captured_prompt_without_padding_takes_the_kernels_of_an_eager_one(attention_name: str) -> None:
    """Without a mask, and so a flash kernel: while a graph is captured a mask cannot be looked at."""
    model = build("qwen3", attention_name, "bfloat16", "cuda")
    seen = []
    for graphs in (False, True):
        cache = StaticSlotCache(model.config, 60)
        loop = DecodeLoop(model, 0, [], None, True, prefill_graphs=graphs)
        asked = prompt(40)
        with torch.inference_mode():
            for _ in range(2):
                loop.generate(asked.ids, asked.mask, cache, 2, Told(), ignore_eos=True)
            with profile() as found:
                loop.generate(asked.ids, asked.mask, cache, 1, Told(), ignore_eos=True)
                torch.cuda.synchronize()
        kernels = [one.name for one in found.events() if one.device_type == torch.autograd.DeviceType.CUDA]
        seen.append(sum("flash" in name.lower() for name in kernels))
    assert seen[0] == seen[1] == model.config.num_hidden_layers


SMALL = "quantization=bnb-nf4-double,projections=fused,kernels=local,cache=static,loop=own,cuda_graphs=manual"
RUNS = [
    ("random:Qwen3-0.6B", f"{SMALL},prefill=chunks-512", 600),  # the preset lowest-memory
    ("random:Llama-3-8B", "prefill=chunks-2048", 8_000),
    ("random:Llama-3-8B", "prefill=chunks-2048,attention=sdpa-gqa,cache=static,loop=own,cuda_graphs=manual", 8_000),
    *(("random:Qwen3-0.6B", f"{CAPTURED}{more}", 256) for more in MORE),
    ("random:Qwen3-0.6B", "cache=static,loop=own,cuda_graphs=manual,compile=default,prefill=compiled", 256),
    ("random:Qwen3-0.6B", "cache=static,loop=own,compile=default,prefill=compiled", 256),
    ("random:Gemma-3-1b", CAPTURED, 300),
    ("random:gpt2", CAPTURED, 100),
    ("random:pocket", f"{CAPTURED},experts=triton", 200),
    ("random:pocket", f"{CAPTURED},experts=triton,projections=fused,kernels=local", 200),
    ("random:DeepSeek-V2-Lite", f"{CAPTURED},experts=triton,projections=fused,kernels=local", 256),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("model", "arm", "tokens"), RUNS)
def test_each_row_is_sound_in_a_run(bench: Bench, model: str, arm: str, tokens: int) -> None:
    work = Workload(prompt_tokens=tokens, max_new_tokens=16, ignore_eos=True)
    run, document = perform(bench, model, dict(parse_arm(model, arm).choices), work)
    assert run.status == "done", run.message
    tell(document)
    (only,) = document["arms"]
    assert unsound(only["evidence"]) == []
    assert next(row for row in only["evidence"] if row["axis"] == "prefill")["status"] == "verified"
