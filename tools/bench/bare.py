"""Time per output token of a bare `generate`: `python -m tools.bench.bare MODEL --new 400 [--static]`, run by limit.py.

The script that a tutorial would show: the model, `generate` with its defaults, and a clock around the whole call. Time
per token is the difference between a long and a short call, divided by the difference in tokens, so nothing hooks into
`generate`. `--static`: `cache_implementation="static"`, which makes `generate` compile its decode step by itself.
"""

import argparse
import json
import time
from typing import Any

from backend.models import resolve
from tools.bench.limit_arms import Work, read_bytes

SHORT = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--prompt-tokens", type=int, default=224)
    parser.add_argument("--new", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--static", action="store_true")
    options = parser.parse_args()
    import torch
    from transformers import GenerationConfig

    from backend.worker.load import random_model

    cuda = torch.cuda.is_available()
    wait = torch.cuda.synchronize if cuda else lambda: None
    model = random_model.random_model(
        resolve(options.model).source.config_json, "auto", None, "cuda" if cuda else "cpu"
    )
    model.eval().generation_config = GenerationConfig(pad_token_id=0)
    ids = torch.arange(3, 3 + options.prompt_tokens, device=model.device)[None] % 97 + 3
    more: dict[str, Any] = {"cache_implementation": "static"} if options.static else {}

    def run(new: int) -> float:
        wait()
        begin_s = time.perf_counter()
        out = model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=new, do_sample=False, eos_token_id=None, **more
        )
        wait()
        assert out.shape[1] == ids.shape[1] + new
        return time.perf_counter() - begin_s

    cold_s = run(SHORT) + run(options.new)  # a static cache keeps the largest length requested so far
    run(SHORT)
    found = [(run(options.new) - run(SHORT)) / (options.new - SHORT) for _ in range(options.repeats)]
    read = read_bytes(model, Work(options.prompt_tokens, options.new, options.repeats))
    cold_s = cold_s if options.static else 0.0
    print(json.dumps({"compile_s": cold_s, "latency_s": found, "read_bytes": read}))


if __name__ == "__main__":
    main()
