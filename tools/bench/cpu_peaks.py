"""Predicted against measured peak memory on a CPU: `python -m tools.bench.cpu_peaks [--only NAME ...] [--json FILE]`.

Shapes of several architectures, each with random weights in a process of its own; three of them are like Gemma 2
(eager attention with capped scores, a large vocabulary, alternating windows) and read a prompt of 800 tokens, and two
are compiled, which takes more where torch's cache does not have the code yet. Exit code 1 if a prediction is further
than --tolerance from what was measured.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from backend.paths import ROOT

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Shape:
    """A model's config, and what is run: an arm, tokens of the prompt, new tokens."""

    config: dict[str, Any]
    arm: str = "dtype=float32"
    prompt: int = 800
    new: int = 16


def _decoder(kind: str, layers: int, hidden: int, heads: int, kv_heads: int, vocab: int, **more: Any) -> dict[str, Any]:
    """Four times as wide in the feed-forward, with heads that share the hidden size evenly."""
    shape = {
        "model_type": kind, "num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": 4 * hidden,
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": hidden // heads,
        "vocab_size": vocab, "max_position_embeddings": 2048, "dtype": "float32", "pad_token_id": 0, "bos_token_id": 1,
        "eos_token_id": 2,
    }  # fmt: skip
    return shape | more


SHAPES = {
    "gemma2-6x512": Shape(_decoder("gemma2", 6, 512, 8, 4, 32_000, sliding_window=512)),
    "gemma2-4x256": Shape(_decoder("gemma2", 4, 256, 8, 4, 256_000, sliding_window=256), "dtype=bfloat16"),
    "gemma2-10x768": Shape(_decoder("gemma2", 10, 768, 12, 4, 64_000, sliding_window=4096), "dtype=bfloat16"),
    "llama-8x512": Shape(_decoder("llama", 8, 512, 8, 8, 32_000)),
    "qwen3-6x384": Shape(_decoder("qwen3", 6, 384, 6, 2, 151_936), "dtype=bfloat16", 300, 100),
    "mistral-6x512": Shape(_decoder("mistral", 6, 512, 8, 2, 32_000, sliding_window=256), "dtype=bfloat16", 600, 64),
    "gemma3-6x512": Shape(
        _decoder("gemma3_text", 6, 512, 4, 1, 128_000, sliding_window=256), "dtype=float32,cache=static", 700, 32
    ),
    "gpt2-6x768": Shape(
        {"model_type": "gpt2", "n_layer": 6, "n_embd": 768, "n_head": 12, "vocab_size": 50_257, "n_positions": 1024,
         "dtype": "float32"},
        "dtype=float32,attention=eager", 500, 32,
    ),
    "llama-16x512-compiled": Shape(
        _decoder("llama", 16, 512, 8, 8, 32_000), "dtype=float32,cache=static,compile=default", 300
    ),
    "llama-8x448-compiled-twice": Shape(
        _decoder("llama", 8, 448, 8, 8, 32_000),
        "dtype=float32,cache=static,loop=own,compile=default,prefill=compiled", 300,
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Peak:
    """Bytes of the process; `parts`: what was predicted for weights, KV cache, temporary tensors and the runtime."""

    predicted: int
    measured: int
    parts: dict[str, int] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """Of the prediction, as a share of what was measured."""
        return self.predicted / self.measured - 1


def peak_of(shape: Shape) -> Peak:
    """Run a shape. RuntimeError if the run fails."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(shape.config))
        command = [
            sys.executable, "-m", "backend", "run", "--model", f"random:{folder}", "--arm", shape.arm,
            "--prompt-tokens", str(shape.prompt), "--max-new-tokens", str(shape.new), "--json", "-",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    arm = json.loads(done.stdout)["arms"][0]
    parts = arm["memory_predicted_bytes"]
    return Peak(parts["total"], arm["summary"]["peak_memory_bytes"], parts)


def measure(names: Sequence[str], tolerance: float, file: Path | None) -> bool:
    """Print a line per shape. Whether all are within the tolerance."""
    found = {}
    for name in names:
        peak = found[name] = peak_of(SHAPES[name])
        parts = ", ".join(f"{part} {size / MIB:.0f}" for part, size in peak.parts.items() if part != "total")
        shape = SHAPES[name]
        print(
            f"{name} {shape.arm}, {shape.prompt} + {shape.new} tokens: predicted {peak.predicted / MIB:.0f} MiB "
            f"({parts}), measured {peak.measured / MIB:.0f} MiB, {peak.error:+.1%}",
            flush=True,
        )
    if file is not None:
        file.write_text(json.dumps({name: asdict(peak) for name, peak in found.items()}))
    return all(abs(peak.error) <= tolerance for peak in found.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--tolerance", type=float, default=0.1)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    return 0 if measure(given.only, given.tolerance, given.json) else 1


if __name__ == "__main__":
    sys.exit(main())
