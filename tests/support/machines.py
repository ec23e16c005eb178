"""Models and machines for tests of rules: real facts, made-up machines."""

import functools
from collections.abc import Mapping
from dataclasses import replace

from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import Gpu, Machine, kernel_packages
from tokendyno.backend.models import ModelFacts, resolve
from tokendyno.backend.optimizations import axis_names

GIB = 1 << 30
PACKAGES = {
    "accelerate": "1.15.0",
    "bitsandbytes": "0.50.2",
    "gguf": "0.19.0",
    "hqq": "0.2.8",
    "kernels": "0.17.2",
    "optimum-quanto": "0.2.7",
    "torch": "2.13.0",
    "torchao": "0.18.0",
    "transformers": "5.22.2",
}
"""What a full installation has."""
GPU_PACKAGES = PACKAGES | {
    "flash-attn": "2.8.3",
    "flash-attn-3": "3.0.0",
    "flash-attn-4": "4.0.0",
    "mslk": "1.0.0",
    "triton": "3.6.0",
}
CPU = Machine(
    cpu="a CPU",
    cores=2,
    memory_bytes=64 * GIB,
    free_bytes=60 * GIB,
    gpus=(),
    driver="",
    gpu_problem="none here",
    python="3.11.0",
    system="Linux",
    packages=tuple(sorted(PACKAGES.items())),
    kernels=str(kernel_packages.BUNDLED),
    kernel_layers=("RMSNorm",),
)
H200 = replace(
    CPU,
    gpus=(Gpu(0, "NVIDIA H200", 140 * GIB, 139 * GIB, (9, 0)),),
    driver="575",
    gpu_problem="",
    packages=tuple(sorted(GPU_PACKAGES.items())),
)
EIGHT = replace(H200, gpus=tuple(replace(H200.gpus[0], index=index) for index in range(8)))
MACHINES = {"cpu": CPU, "h200": EIGHT}

NAMES = (
    "pocket",
    "random:gpt2",
    "random:Mistral-7B-v0.1",
    "random:Gemma-3-1b",
    "random:gpt-oss-20b",
    "random:Qwen3-0.6B",
)


@functools.cache
def facts(name: str = "pocket") -> ModelFacts:
    """Facts of a model that needs no Hub."""
    return resolve(name)


def settled(model: ModelFacts, choices: Mapping[str, str], machine: Machine, work: Workload | None = None) -> Checked:
    """An arm after the fixes that its verdicts offer were pressed, as long as they leave `choices` alone."""
    every = dict(choices)
    for _ in range(len(axis_names())):
        checked = check(make_config(model.model, every), model, machine, work or Workload(prompt="Once"))
        fixes = {axis: choice for verdict in checked.blocked for axis, choice in verdict.fix.items()}
        news = {axis: choice for axis, choice in fixes.items() if axis not in choices and every.get(axis) != choice}
        if not news:
            return checked
        every |= news
    return checked
