"""Time per token of gpt-fast at a model's shape: `python -m tools.bench.gpt_fast PATH --new 400`, run by limit.py.

PATH: a checkout of https://github.com/pytorch-labs/gpt-fast (BSD-3), which is not part of this project. With its own
settings: random bf16 weights, static cache, the decode step compiled in mode reduce-overhead with coordinate-descent
tuning, sampling with top-k 200 as in its generate.py. `--tiny`: a small shape, to try this script.
"""

import argparse
import itertools
import json
import statistics
import sys
import time
import types
from pathlib import Path
from typing import Any

TINY = {"block_size": 256, "n_layer": 2, "n_head": 4, "n_local_heads": 2, "dim": 64, "intermediate_size": 96,
        "vocab_size": 300}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--name", default="llama-3-8b")
    parser.add_argument("--prompt-tokens", type=int, default=224)
    parser.add_argument("--new", type=int, default=400)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    sys.path.insert(0, str(options.path.resolve()))
    stub: Any = types.ModuleType("tokenizer")  # the original needs two more packages, and no text is tokenized here
    stub.get_tokenizer = None
    sys.modules["tokenizer"] = stub
    import torch

    torch.set_grad_enabled(False)
    import generate as fast  # type: ignore[import-not-found]
    from model import Transformer, transformer_configs  # type: ignore[import-not-found]

    if options.tiny:
        transformer_configs[options.name] = TINY
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    with torch.device("meta"):
        model = Transformer.from_name(options.name)
    model = model.to(torch.bfloat16).to_empty(device=device).eval()
    for parameter in model.parameters():
        parameter.normal_(std=0.02)
    with torch.device(device):
        model.setup_caches(max_batch_size=1, max_seq_length=options.length)
    step: Any = torch.compile(fast.decode_one_token, mode="reduce-overhead", fullgraph=True)
    fast.decode_one_token = step
    prompt = torch.arange(options.prompt_tokens, device=device, dtype=torch.int)[None] % 97 + 3
    places = torch.arange(options.prompt_tokens, device=device)

    def run(new: int) -> list[float]:
        token = fast.prefill(model, prompt, places, temperature=0.8, top_k=200)
        marks: list[Any] = []

        def mark(_: Any) -> None:
            if not cuda:
                marks.append(time.perf_counter())
                return
            marks.append(torch.cuda.Event(enable_timing=True))
            marks[-1].record()

        where = torch.tensor([options.prompt_tokens], device=device, dtype=torch.int)
        fast.decode_n_tokens(model, token.view(1, -1), where, new, callback=mark, temperature=0.8, top_k=200)
        if cuda:
            torch.cuda.synchronize()
            return [a.elapsed_time(b) / 1e3 for a, b in itertools.pairwise(marks)]
        return [b - a for a, b in itertools.pairwise(marks)]

    begin_s = time.perf_counter()
    run(5)
    cold_s = time.perf_counter() - begin_s
    run(options.new)  # as warm as the other arms
    medians = [statistics.median(run(options.new)[5:]) for _ in range(options.repeats)]
    shape, tokens = model.config, options.prompt_tokens + options.new // 2
    read = sum(p.nbytes for p in model.parameters()) - model.tok_embeddings.weight.nbytes
    read += 4 * shape.n_layer * shape.n_local_heads * shape.head_dim * tokens  # as limit_arms.read_bytes
    print(json.dumps({"compile_s": cold_s, "latency_s": medians, "read_bytes": read}))


if __name__ == "__main__":
    main()
