"""The sum: what belongs to it, and what makes it grow."""

import pytest

from backend.models import resolve
from backend.predict import kv_bytes, peak_bytes, weight_bytes


def test_the_total_is_the_sum_of_its_parts() -> None:
    memory = peak_bytes(resolve("random:Llama-3-8B"), "auto", "dynamic", 100, 50, 2, "cuda")
    assert memory.total == memory.weights + memory.kv + memory.workspace + memory.runtime_bytes
    assert memory.weights == weight_bytes(resolve("Llama-3-8B"))
    assert memory.kv == kv_bytes(resolve("Llama-3-8B"), "dynamic", 149, 2, 2).total


@pytest.mark.parametrize("name", ["Llama-3-8B", "Mistral-7B-v0.1", "gpt-oss-20b", "Gemma-3-1b", "gpt2"])
@pytest.mark.parametrize("cache", ["dynamic", "unwindowed", "static"])
def test_more_of_anything_never_needs_less(name: str, cache: str) -> None:
    facts, kind = resolve(f"random:{name}"), cache

    def total(prompt: int = 100, new: int = 100, batch: int = 1, dtype: str = "bfloat16") -> int:
        return peak_bytes(facts, dtype, kind, prompt, new, batch).total  # type: ignore[arg-type]

    base = total()
    assert total(prompt=900) > base < total(batch=4)
    assert total(new=800) >= base < total(dtype="float32")


def test_a_prompt_longer_than_the_window_is_held_whole_until_the_first_decoded_token() -> None:
    facts = resolve("random:Mistral-7B-v0.1")
    long = peak_bytes(facts, prompt_length=20_000, new_tokens=10)
    assert long.kv == kv_bytes(facts, "unwindowed", 20_000, 1, 2).total
    short = peak_bytes(facts, prompt_length=10, new_tokens=20_000)
    assert short.kv == kv_bytes(facts, "dynamic", 20_009, 1, 2).total


def test_a_static_cache_counts_all_its_places() -> None:
    facts = resolve("random:Llama-3-8B")
    memory = peak_bytes(facts, cache="static", prompt_length=10, new_tokens=10, max_cache_len=512)
    assert memory.kv == kv_bytes(facts, "static", 19, 1, 2, 512).total
    assert peak_bytes(facts, cache="static", prompt_length=10, new_tokens=10).kv < memory.kv


def test_eager_attention_needs_its_scores_and_sdpa_does_not() -> None:
    facts = resolve("random:Llama-3-8B")
    eager = peak_bytes(facts, prompt_length=4_096, attention="eager").workspace
    assert eager > 4 * peak_bytes(facts, prompt_length=4_096, attention="sdpa").workspace


def test_the_largest_model_does_not_fit_one_gpu_and_the_default_fits_anywhere() -> None:
    assert peak_bytes(resolve("random:gpt-oss-120b"), device="cuda").total > 141e9
    assert peak_bytes(resolve("pocket"), prompt_length=4_000, new_tokens=96).total < 2e9
