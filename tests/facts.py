"""Models and machines for tests of rules: real facts, made-up machines."""

from dataclasses import replace

from backend.hardware import Gpu, Machine
from backend.models import ModelFacts, resolve

GIB = 1 << 30
CPU = Machine(
    cpu="a CPU", cores=2, memory_bytes=64 * GIB, free_bytes=60 * GIB, gpus=(), driver="", gpu_problem="none here",
    python="3.11.0", system="Linux",
)  # fmt: skip
H200 = replace(CPU, gpus=(Gpu(0, "NVIDIA H200", 140 * GIB, 139 * GIB, (9, 0)),), driver="575", gpu_problem="")
MACHINES = {"cpu": CPU, "h200": H200}

NAMES = (
    "pocket",
    "random:gpt2",
    "random:Mistral-7B-v0.1",
    "random:Gemma-3-1b",
    "random:gpt-oss-20b",
    "random:Qwen3-0.6B",
)


def facts(name: str = "pocket") -> ModelFacts:
    """Facts of a model that needs no Hub."""
    return resolve(name)
