"""`tools.bench.script_times` on a GPU: `python -m tools.bench.gpu.script_times [--rounds N]`.

The arms cover each clock and way of decoding: eager `generate`, graphs of torch.compile, the custom loop with a
captured graph, our kernels, MXFP4 weights, prompt look-up and an encoder.
"""

import argparse
import sys

from tools.bench.script_times import options

LOOP = "cache=static,loop=own,cuda_graphs=manual"
ARMS = (
    ("pocket", "cache=static,compile=reduce-overhead"),
    ("random:Qwen3-0.6B", ""),
    ("random:Qwen3-0.6B", f"{LOOP},projections=fused,kernels=local"),
    ("random:Llama-3-8B", "cache=static,compile=reduce-overhead,attention=sdpa-gqa"),
    ("random:Llama-3-8B", f"{LOOP},projections=fused,kernels=local"),
    ("random:gpt-oss-20b", "quantization=mxfp4"),
    ("pocket", "speculation=prompt-lookup"),
    ("random:bert-base-uncased", ""),
)

if __name__ == "__main__":
    sys.exit(options(argparse.ArgumentParser(description=__doc__), ARMS, rounds=3, new=128))
