"""GPU memory of a process beyond the allocator's, step by step: its CUDA context, then what one feature adds.

`python -m tools.bench.gpu.context_steps FEATURE [--device cpu]` prints one JSON list: each step with the bytes of the
process and what the allocator had reserved. Each feature runs in its own process, so that none finds the libraries of
another one loaded. On a CPU the bytes are resident memory, which only tests this script.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from backend.paths import ROOT

WIDTH = 1024
LENGTHS = 100
"""Number of new sequence lengths that `plans` attends to; its bytes are divided by it."""

Step = tuple[str, Callable[[], Any]]


def common(torch: Any, device: str) -> Iterator[Step]:
    """What every run does: create a context, launch some kernels, multiply matrices."""
    yield "context", lambda: torch.zeros(1, device=device)

    def kernels() -> None:
        x = torch.randn(64, WIDTH, device=device, dtype=torch.bfloat16)
        y = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype)
        y = torch.cat([torch.nn.functional.silu(y), -y], -1).softmax(-1)
        ids = y.float().argmax(-1)
        torch.nn.functional.embedding(ids % 64, x).index_copy_(0, ids[:1] % 64, x[:1]).cos().sum().item()

    yield "kernels", kernels
    for dtype in ("bfloat16", "float32"):

        def products(dtype: str = dtype) -> None:
            matrix = torch.randn(WIDTH, WIDTH, device=device, dtype=getattr(torch, dtype))
            for rows in (1, 64):
                torch.nn.functional.linear(matrix[:rows], matrix)
            torch.bmm(matrix.view(16, 64, WIDTH), matrix.view(16, WIDTH, 64))

        yield f"products {dtype}", products


def sdpa(torch: Any, device: str, backend: str, lengths: Iterator[int] | range) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    query = torch.randn(1, 16, 1, 128, device=device, dtype=torch.bfloat16)
    with torch.inference_mode(), sdpa_kernel(getattr(SDPBackend, backend)):
        for length in lengths:
            keys = torch.randn(1, 16, length, 128, device=device, dtype=torch.bfloat16)
            torch.nn.functional.scaled_dot_product_attention(query, keys, keys)


def experts(torch: Any, device: str) -> None:
    """Grouped matrix products, as in prefill and decoding of a mixture of experts."""
    weights = torch.randn(8, 256, 512, device=device, dtype=torch.bfloat16)
    ends = torch.arange(8, 65, 8, device=device, dtype=torch.int32)
    torch._grouped_mm(torch.randn(64, 256, device=device, dtype=torch.bfloat16), weights, offs=ends)


def compiled(torch: Any, device: str, mode: str) -> None:
    matrix = torch.randn(WIDTH, WIDTH, device=device, dtype=torch.bfloat16)

    def block(x: Any) -> Any:
        y = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).to(x.dtype)
        return torch.nn.functional.silu(y @ matrix).softmax(-1)

    run = torch.compile(block, mode=mode)
    with torch.inference_mode():
        for _ in range(4):
            run(torch.ones(1, WIDTH, device=device, dtype=torch.bfloat16))


def graph(torch: Any, device: str) -> None:
    """200 matrix products and as many small kernels, captured: like a decode step of a model with 28 layers."""
    from backend.worker.loop.cuda_graph import capture

    x, matrix = (torch.ones(rows, WIDTH, device=device, dtype=torch.bfloat16) for rows in (1, WIDTH))

    def step() -> None:
        y = x
        for _ in range(200):
            y = torch.nn.functional.silu(torch.nn.functional.linear(y, matrix))

    replay = capture(step, lambda: None)
    replay()


def packed(torch: Any, device: str, kind: str) -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH, bias=False, dtype=torch.bfloat16))
    match kind:
        case "bnb-int8" | "bnb-nf4":
            import bitsandbytes

            made = {
                "bnb-int8": lambda: bitsandbytes.nn.Linear8bitLt(WIDTH, WIDTH, bias=False, has_fp16_weights=False),
                "bnb-nf4": lambda: bitsandbytes.nn.Linear4bit(
                    WIDTH, WIDTH, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4"
                ),
            }[kind]()
            made.load_state_dict({"weight": layer[0].weight.data})
            layer = torch.nn.Sequential(made).to(device)
        case "torchao-int8":
            from torchao.quantization import Int8WeightOnlyConfig, quantize_

            layer = layer.to(device)
            quantize_(layer, Int8WeightOnlyConfig(set_inductor_config=False))
        case _:
            from optimum.quanto import freeze, qint8, quantize

            layer = layer.to(device)
            quantize(layer, weights=qint8)
            freeze(layer)
    with torch.inference_mode():
        for rows in (1, 64):
            layer(torch.ones(rows, WIDTH, device=device, dtype=torch.bfloat16))


FEATURES: dict[str, Callable[[Any, str], Any]] = {
    "nothing": lambda torch, device: None,
    "sdpa-math": lambda torch, device: sdpa(torch, device, "MATH", range(64, 66)),
    "sdpa-flash": lambda torch, device: sdpa(torch, device, "FLASH_ATTENTION", range(64, 66)),
    "sdpa-efficient": lambda torch, device: sdpa(torch, device, "EFFICIENT_ATTENTION", range(64, 66)),
    "sdpa-cudnn": lambda torch, device: sdpa(torch, device, "CUDNN_ATTENTION", range(64, 66)),
    "experts": experts,
    "compile": lambda torch, device: compiled(torch, device, "default"),
    "compile-graphs": lambda torch, device: compiled(torch, device, "reduce-overhead"),
    "graph": graph,
    "bnb-int8": lambda torch, device: packed(torch, device, "bnb-int8"),
    "bnb-nf4": lambda torch, device: packed(torch, device, "bnb-nf4"),
    "torchao-int8": lambda torch, device: packed(torch, device, "torchao-int8"),
    "quanto-int8": lambda torch, device: packed(torch, device, "quanto-int8"),
}


def measure(feature: str, device: str) -> list[dict[str, Any]]:
    """Run and measure each step in this process. A failed step keeps its error, and the others still run."""
    import torch

    from backend.worker.measure.memory import MemoryMeter

    cuda = device == "cuda"
    meter: Any = None if cuda else MemoryMeter("cpu")
    steps = [*common(torch, device), (feature, lambda: FEATURES[feature](torch, device))]
    if feature == "sdpa-cudnn":
        steps.append(("plans", lambda: sdpa(torch, device, "CUDNN_ATTENTION", range(200, 200 + LENGTHS))))
    found = []
    for name, act in steps:
        begin_s, error = time.perf_counter(), ""
        try:
            act()
            if cuda:
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
        except Exception as failed:
            error = f"{type(failed).__name__}: {failed}"[:300]
        meter = meter or MemoryMeter("cuda")
        found.append(
            {
                "feature": feature, "step": name, "process": meter.read(), "label": meter.label,
                "reserved": torch.cuda.memory_reserved() if cuda else 0, "error": error,
                "took_s": round(time.perf_counter() - begin_s, 3),
            }
        )  # fmt: skip
    return found


def measured_aside(feature: str, device: str, timeout_s: float) -> list[dict[str, Any]]:
    """`measure` in a subprocess; a missing step is replaced by one with an error."""
    command = [sys.executable, "-m", "tools.bench.gpu.context_steps", feature, "--device", device]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return [{"feature": feature, "step": feature, "error": f"no answer within {timeout_s:.0f} s"}]
    if done.returncode:
        return [{"feature": feature, "step": feature, "error": done.stderr[-500:]}]
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("feature", choices=FEATURES)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    options = parser.parse_args()
    print(json.dumps(measure(options.feature, options.device)))


if __name__ == "__main__":
    main()
