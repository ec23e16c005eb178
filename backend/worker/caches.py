"""Makes the cache that a plan asks for."""

from typing import Any

import torch
from transformers import DynamicCache, QuantizedCache, StaticCache

from backend.errors import InputError
from backend.plan import GeneratePlan
from backend.predict.kv import GROUP
from backend.worker.steady import SteadyCache


class Caches:
    """Caches of one model. A static one is kept between runs of one shape: compiled graphs and captured ones
    hold the addresses of its tensors."""

    def __init__(self, config: Any) -> None:
        self._config = config.get_text_config(decoder=True)
        self._static: tuple[type, int, int, Any] | None = None

    def make(self, plan: GeneratePlan, batch_size: int, length: int) -> Any:
        """An empty cache. `length`: tokens that a static one must hold."""
        match plan.cache:
            case "dynamic":
                return DynamicCache(config=self._config)
            case "unwindowed":
                return DynamicCache()
            case "static":
                kind = SteadyCache if plan.loop == "own" else StaticCache
                if self._static is None or self._static[:3] != (kind, batch_size, length):
                    self._static = None
                    self._static = (kind, batch_size, length, kind(config=self._config, max_cache_len=length))
                else:
                    with torch.inference_mode():
                        self._static[3].reset()
                return self._static[3]
            case "offloaded":
                return DynamicCache(config=self._config, offloading=True)
            case "offloaded_static":
                return StaticCache(config=self._config, max_cache_len=length, offloading=True)
            case "quantized-fp8":
                return QuantizedCache("fp8", self._config)
            case "quantized-hqq4":
                return QuantizedCache("hqq", self._config, nbits=4)
            case "quantized-quanto4":
                unpack_with_torch()
                return QuantizedCache("quanto", self._config, nbits=4)

    def require_groups(self, plan: GeneratePlan, batch_size: int, prompt_tokens: int) -> None:
        """InputError if the keys of a prompt cannot be divided into whole groups. hqq groups those of the batch
        together, optimum-quanto each row's; what is quantized later are 128 tokens more, which always divide."""
        if plan.cache not in ("quantized-hqq4", "quantized-quanto4"):
            return
        config = self._config
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        numbers = head * (getattr(config, "num_key_value_heads", None) or config.num_attention_heads)
        rows = batch_size if plan.cache == "quantized-hqq4" else 1
        if prompt_tokens * numbers * rows % GROUP:
            raise InputError(
                f"This cache is quantized in groups of {GROUP} numbers, and {prompt_tokens:,} prompt tokens with "
                f"{numbers} numbers each do not divide into them. Take a prompt of a multiple of {GROUP} tokens "
                f"(--prompt-tokens), or cache=quantized-fp8."
            )


def unpack_with_torch() -> None:
    """Let optimum-quanto unpack its codes with torch's operators.

    Its own helper is built when it is first used: for a minute with a C++ compiler, on a GPU for many with nvcc, which
    also builds kernels that a cache never calls. On a CPU it calls the same operators. Codes of row i lie in the low
    bits, those of the rows after it above.
    """
    from optimum.quanto.tensor.packed import PackedTensor

    def unpack(packed: Any) -> torch.Tensor:
        bits, codes = packed._bits, packed._data
        rows = torch.cat([(codes >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)])
        return rows[: packed.shape[0]]

    PackedTensor.unpack = unpack
