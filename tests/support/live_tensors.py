"""What torch's allocator would hold while real model code runs on tensors without memory: no weights, no arithmetic."""

from typing import Any, NamedTuple

from tests.support.sharded import materialise, split

BLOCK = 512  # the CUDA allocator's rounding (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize)


class Peaks(NamedTuple):
    """Bytes beside weights and cache, at their largest: while the prompt is read, and in the last step after it."""

    prefill: int
    step: int


def peaks(
    config: Any,
    attention: str | None,
    batch: int,
    prompt: int,
    steps: int = 2,
    decode_experts: str = "",
    mesh: Any = None,
    chunk: int = 0,
    places: int = 0,
) -> Peaks:
    """Run the model's code as `generate` does: the prompt, in passes of `chunk` tokens if that is given, then single
    tokens, with float32 copies of the logits. `places`: slots of a static cache; 0: it grows. With a `mesh`
    (`sharded.ranks`), on its first rank."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from transformers import AutoModelForCausalLM, DynamicCache, StaticCache

    from tokendyno.backend.counter.workspace import Live

    dtype = config.dtype if isinstance(config.dtype, torch.dtype) else getattr(torch, config.dtype or "bfloat16")

    def held(cache: Any) -> int:
        tensors = [t for layer in cache.layers for t in (layer.keys, layer.values) if t is not None]
        return sum(t.untyped_storage().nbytes() for t in tensors)

    with FakeTensorMode(allow_non_fake_inputs=True):
        with torch.device("cpu" if mesh is None else "meta"):
            model = AutoModelForCausalLM.from_config(config, dtype=dtype, attn_implementation=attention).eval()
        model.tie_weights()
        own = [*model.parameters(), *model.buffers()] if mesh is None else materialise(split(model, mesh))
        live = Live(BLOCK)
        for tensor in own:
            live.track(tensor)
        weights = live.now
        with live, torch.inference_mode():
            ids = torch.zeros(batch, prompt, dtype=torch.long)
            cache = StaticCache(config=config, max_cache_len=places) if places else DynamicCache(config=config)
            live.peak = live.now
            mask, every = torch.ones(batch, prompt, dtype=torch.long), torch.arange(prompt)[None]
            for begin in range(0, prompt, chunk or prompt):
                end = min(prompt, begin + (chunk or prompt))
                out = model(
                    input_ids=ids[:, begin:end],
                    past_key_values=cache,
                    logits_to_keep=1,
                    position_ids=every[:, begin:end],
                    attention_mask=mask[:, :end] if chunk else None,
                )
            logits = out.logits[:, -1, :].to(torch.float32, copy=True)
            prefill = live.peak - weights - held(cache)
            del out
            if decode_experts:
                model.set_experts_implementation(decode_experts)
            for step in range(steps):
                ids = torch.cat([ids, logits.argmax(-1, keepdim=True)], -1)
                live.peak = live.now
                out = model(
                    input_ids=ids[:, -1:],
                    past_key_values=cache,
                    logits_to_keep=1,
                    position_ids=torch.full((1, 1), prompt + step),
                )
                logits = out.logits[:, -1, :].to(torch.float32, copy=True)
                del out
            found = Peaks(prefill, live.peak - weights - held(cache))
    return found
