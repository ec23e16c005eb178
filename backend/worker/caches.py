"""Makes the cache that a plan asks for."""

from typing import Any

import torch
from transformers import DynamicCache, StaticCache

from backend.plan import GeneratePlan


class Caches:
    """Caches of one model. A static one is kept between runs of one shape: compiled graphs and captured ones
    hold the addresses of its tensors."""

    def __init__(self, config: Any) -> None:
        self._config = config.get_text_config(decoder=True)
        self._static: tuple[int, int, Any] | None = None

    def make(self, plan: GeneratePlan, batch_size: int, length: int) -> Any:
        """An empty cache. `length`: tokens that a static one must hold."""
        match plan.cache:
            case "dynamic":
                return DynamicCache(config=self._config)
            case "unwindowed":
                return DynamicCache()
            case "static":
                if self._static is None or self._static[:2] != (batch_size, length):
                    self._static = None
                    self._static = (batch_size, length, StaticCache(config=self._config, max_cache_len=length))
                else:
                    with torch.inference_mode():
                        self._static[2].reset()
                return self._static[2]
            case _:
                raise NotImplementedError(plan.cache)
