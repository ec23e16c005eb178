"""The machine: devices, memory, driver, packages. Read from NVML and the system, never from torch."""

import contextlib
import functools
import importlib.metadata
import itertools
import os
import platform
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.version import Version

from tokendyno.backend.hardware import bandwidth, kernel_packages, zero_gpu
from tokendyno.backend.hardware.compilers import compiler_problem
from tokendyno.backend.hardware.host import host_memory
from tokendyno.backend.hardware.number_formats import FormatTime
from tokendyno.backend.hardware.nvidia import Gpu as Gpu
from tokendyno.backend.hardware.nvidia import detect_gpus, left_unused

PACKAGES = (
    "torch", "transformers", "gradio", "plotly", "bitsandbytes", "kernels", "nvidia-ml-py",
    "numpy", "tokenizers", "safetensors", "huggingface-hub", "gguf", "triton", "accelerate",
    "torchao", "optimum", "optimum-quanto", "gptqmodel", "compressed-tensors", "hqq",
    "mslk", "flash-attn", "flash-attn-3", "flash-attn-4",
    "aqlm", "amd-quark", "auto-round", "fbgemm-gpu", "flute-kernel", "qutlass", "sinq", "spqr_quant", "vptq",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that runs the arms.

    avx512_bf16    the CPU has these instructions, for which bitsandbytes repacks 4-bit weights
    bfloat16       how long products in bfloat16 take on this CPU; empty if never measured, or with a GPU
    hub_kernels    kernel repositories of the Hub that need no download
    kernels        folder of `kernels=local`; "" if it has none for this device
    no_compiler    what torch.compile lacks here (`hardware/compilers.py`); "" if nothing
    hosts          machines that share a model, with this one; the others are taken to be alike
    assumed        of a machine that is not here (`hardware/elsewhere.py`): what is taken for granted, in a sentence
    """

    cpu: str
    cores: int
    memory_bytes: int
    free_bytes: int
    gpus: tuple[Gpu, ...]
    driver: str
    gpu_problem: str
    python: str
    system: str
    packages: tuple[tuple[str, str], ...] = ()
    hub_offline: bool = False
    avx512_bf16: bool = False
    bfloat16: tuple[FormatTime, ...] = ()
    hub_kernels: tuple[str, ...] = ()
    kernels: str = ""
    kernel_layers: tuple[str, ...] = ()
    nvml_problem: str = ""
    no_compiler: str = ""
    zero_gpu: bool = False
    hosts: int = 1
    assumed: str = ""

    @property
    def name(self) -> str:
        """What it computes with, as the key of measurements: its first GPU, or its CPU with the number of cores."""
        return self.gpus[0].name if self.gpus else f"{self.cpu}, {self.cores} cores"

    @property
    def capability(self) -> tuple[int, int]:
        """CUDA compute capability of the GPU in use; (0, 0) without one."""
        return self.gpus[0].capability if self.gpus else (0, 0)

    def version(self, package: str) -> Version | None:
        """The installed version of a distribution, None if it is not installed."""
        version = dict(self.packages).get(package)
        return Version(version) if version else None

    def has(self, package: str) -> bool:
        """Whether a distribution is installed."""
        return self.version(package) is not None

    @property
    def torch_has_cuda(self) -> bool:
        """Whether torch is a CUDA build: by its local version, else by what PyPI serves for this system."""
        torch = self.version("torch")
        if torch is None:
            return False
        if torch.local:
            return torch.local.startswith("cu")
        return self.system.endswith("x86_64") and "Linux" in self.system

    @property
    def device(self) -> str:
        """Where workers load the model: "cuda" with a GPU, else "cpu"."""
        return "cuda" if self.gpus else "cpu"

    @property
    def gpu_uuid(self) -> str:
        """NVML's identifier of the card in use; "" without a GPU."""
        return self.gpus[0].uuid if self.gpus else ""

    @property
    def devices(self) -> int:
        """GPUs of this machine, or CPU cores without one."""
        return len(self.gpus) or self.cores

    @property
    def free_device_bytes(self) -> int:
        """Free memory of the first GPU, or of the host without one, when the machine was read."""
        return self.gpus[0].free_bytes if self.gpus else self.free_bytes

    def describe(self) -> dict[str, str]:
        """Facts as text, by name, for `machine` in a result."""
        gib = 1 << 30
        facts = {
            "device": self.device,
            "cpu": self.cpu,
            "cores": str(self.cores),
            "memory": f"{self.memory_bytes / gib:.1f} GiB",
            "python": self.python,
            "system": self.system,
        }
        for gpu in self.gpus:
            major, minor = gpu.capability
            facts[f"gpu{gpu.index}"] = f"{gpu.name}, {gpu.memory_bytes / gib:.1f} GiB, capability {major}.{minor}"
        if self.hosts > 1:
            facts["machines"] = f"{self.hosts}, taken to be alike"
        texts = {"uuid": self.gpu_uuid, "driver": self.driver, "gpu": self.gpu_problem, "nvml": self.nvml_problem}
        return facts | {name: text for name, text in texts.items() if text}

    @property
    def remarks(self) -> list[str]:
        """What to tell the user at the start: a GPU that is present but not used, or one that NVML cannot read."""
        unused = self.gpu_problem if " is not used: " in self.gpu_problem else ""
        return [f"{text[0].upper()}{text[1:]}." for text in (unused.rstrip("."), self.nvml_problem) if text]


def detect() -> Machine:
    """Read the machine now. Takes a few ms, so that it can be called before every run. InputError as `left_unused`."""
    lent = zero_gpu.on_zero_gpu() and not left_unused()
    detected = zero_gpu.lent_gpu() if lent else detect_gpus()
    total, free = host_memory()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    device = "cuda" if detected.gpus else "cpu"
    folder = kernel_packages.local_folder(device)
    kernel_layers = kernel_packages.layers(Path(folder), device) if folder else {}
    machine = Machine(
        cpu=_cpu_info().get("model name") or platform.processor() or platform.machine(),
        cores=cores,
        memory_bytes=total,
        free_bytes=free,
        gpus=detected.gpus,
        driver=detected.driver,
        gpu_problem=detected.problem,
        python=platform.python_version(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        packages=tuple(sorted(versions().items())),
        hub_offline=hub_offline(),
        avx512_bf16="avx512_bf16" in _cpu_info().get("flags", "").split(),
        hub_kernels=kernel_packages.offline_repos(),
        kernels=folder,
        kernel_layers=tuple(sorted(kernel_layers)),
        nvml_problem=detected.nvml_problem,
        no_compiler=compiler_problem(device),
        zero_gpu=lent,
    )
    measured = None if machine.gpus else bandwidth.recall(machine.name)
    return replace(machine, bfloat16=tuple(measured.bfloat16)) if measured else machine


def hub_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids downloads, parsed as huggingface_hub parses it."""
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


@functools.cache
def _cpu_info() -> dict[str, str]:
    """The fields of the first core in /proc/cpuinfo; empty without that file."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        fields = (line.partition(":") for line in itertools.takewhile(str.strip, lines))
        return {name.strip(): value.strip() for name, _, value in fields}
    return {}


@functools.cache
def versions() -> dict[str, str]:
    """Installed versions by distribution name, without those that are missing."""
    installed = {"tokendyno": _version("tokendyno"), "python": platform.python_version()}
    installed |= {name: _version(name) for name in PACKAGES}
    return {name: version for name, version in installed.items() if version}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
