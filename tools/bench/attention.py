"""Times the attention of one decode step on a GPU, for several implementations.

    python -m tools.bench.attention [--places 1024] [--heads 32] [--key-heads 8] [--layers 32] [--json FILE]

Each implementation runs over as many layers as a model has, captured in one CUDA graph and replayed. Printed:
microseconds per layer, and the rate at which keys and values are read. `sdpa` is what transformers does with a mask,
`sdpa-gqa` what `backend/worker/patch/attention.py` does; the others are alternatives.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from backend.worker.patch.attention import one_query

REPLAYS = 50


def repeated(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """transformers' sdpa with a mask."""
    groups = q.shape[1] // k.shape[1]
    keys, values = (t[:, :, None].expand(-1, -1, groups, -1, -1).flatten(1, 2) for t in (k, v))
    return F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)


def enable_gqa(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """sdpa with enable_gqa."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def folded(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """The queries of a group as rows of one query with one key head."""
    rows = q.unflatten(1, (k.shape[1], -1)).squeeze(3)
    return F.scaled_dot_product_attention(rows, k, v, attn_mask=mask).flatten(1, 2).unsqueeze(2)


def matrix_products(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """Two batched matrix products per group of heads."""
    rows = q.unflatten(1, (k.shape[1], -1)).squeeze(3)
    scores = (rows @ k.transpose(2, 3)).float() * q.shape[-1] ** -0.5
    weights = F.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return (weights.to(v.dtype) @ v).flatten(1, 2).unsqueeze(2)


def written_out(q: Any, k: Any, v: Any, mask: Any) -> Any:
    """sdpa-gqa."""
    return one_query(q, k, v, mask, q.shape[-1] ** -0.5)


WAYS: dict[str, Callable[..., Any]] = {
    "sdpa (heads copied)": repeated, "sdpa enable_gqa": enable_gqa, "sdpa folded": folded,
    "matrix products": matrix_products, "sdpa-gqa": written_out,
}  # fmt: skip


def replayed_s(run: Any, query: Any, pairs: Any, mask: Any) -> float:
    """Median seconds of a captured graph with one call per pair of keys and values."""

    def step() -> None:
        for keys, values in pairs:
            run(query, keys, values, mask)

    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    times = []
    for _ in range(REPLAYS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(float(begin.elapsed_time(end)) / 1e3)
    return statistics.median(times)


def main() -> None:
    """Print a table, and write it as JSON with --json."""
    parser = argparse.ArgumentParser()
    for name, value in (("batch", 1), ("places", 1024), ("heads", 32), ("key-heads", 8), ("size", 128), ("layers", 32)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.manual_seed(0)

    def tensor(*shape: int) -> Any:
        return torch.randn(*shape, dtype=torch.bfloat16, device="cuda")

    query = tensor(given.batch, given.heads, 1, given.size)
    pairs = [
        [tensor(given.batch, given.key_heads, given.places, given.size) for _ in range(2)] for _ in range(given.layers)
    ]
    mask = torch.ones(given.batch, 1, 1, given.places, dtype=torch.bool, device="cuda")
    mask[..., given.places * 3 // 4 :] = False
    wanted = repeated(query.float(), pairs[0][0].float(), pairs[0][1].float(), mask)
    held = 2 * pairs[0][0].nbytes
    rows = []
    for name, way in WAYS.items():
        for how, tuned in (("eager", None), ("compiled", False), ("compiled, tuned", True)):
            torch._dynamo.reset()
            run: Any = way
            if tuned is not None:
                run = torch.compile(way, options={"coordinate_descent_tuning": tuned}, dynamic=False)
            try:
                with torch.inference_mode():
                    error = (run(query, *pairs[0], mask).float() - wanted).abs().max().item()
                    layer_s = replayed_s(run, query, pairs, mask) / given.layers
            except Exception as problem:  # an implementation that this torch lacks becomes a row too
                rows.append({"way": name, "how": how, "problem": f"{type(problem).__name__}: {problem}"[:120]})
                print(rows[-1])
                continue
            rate = held / layer_s
            rows.append({"way": name, "how": how, "layer_s": layer_s, "bytes_per_s": rate, "error": error})
            print(f"{name:22} {how:16} {layer_s * 1e6:7.2f} us a layer, {rate / 1e12:5.2f} TB/s, off by {error:.4f}")
    if given.json:
        given.json.write_text(
            json.dumps({"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "rows": rows})
        )


if __name__ == "__main__":
    main()
