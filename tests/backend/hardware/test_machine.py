"""The machine by NVML, psutil and the control group; what cannot be read is reported, never 0."""

import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from tests.support.machines import CPU, GIB
from tokendyno.backend import hardware
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import cuda_driver, host, nvidia
from tokendyno.backend.hardware.cuda_driver import CudaDevice, DriverInfo


class Memory(NamedTuple):
    total: int
    free: int


class FakeNvml:
    """A fake NVML: two GPUs, or the given error. `mig`: of the GPUs in MIG mode, the places of their slices; `shared`:
    they have no memory of their own."""

    class NVMLError_NotSupported(Exception): ...

    def __init__(
        self,
        count: int = 2,
        error: Exception | None = None,
        cuda: int | None = 13_000,
        mig: dict[int, tuple[int, ...]] | None = None,
        shared: bool = False,
    ) -> None:
        self.count, self.error, self.cuda, self.mig, self.shared = count, error, cuda, mig, shared

    def nvmlDeviceGetCount(self) -> int:
        if self.error is not None:
            raise self.error
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int | tuple[int, int]) -> Memory:
        if self.shared:
            raise self.NVMLError_NotSupported
        if isinstance(handle, tuple):
            return Memory(18 * GIB, (17 - handle[1]) * GIB)
        return Memory(140 * GIB, (139 - handle) * GIB)

    def nvmlDeviceGetUUID(self, handle: int | tuple[int, int]) -> str:
        return f"MIG-{handle[0]}{handle[1]}c" if isinstance(handle, tuple) else f"GPU-{handle}0f"

    def nvmlDeviceGetMigMode(self, handle: int) -> list[int]:
        if self.mig is None:
            raise RuntimeError("Not Supported")
        return [int(handle in self.mig)] * 2

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: int) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: int, index: int) -> tuple[int, int]:
        assert self.mig is not None
        if index not in self.mig[handle]:
            raise RuntimeError("Not Found")
        return handle, index

    def nvmlDeviceGetGpuInstanceId(self, handle: tuple[int, int]) -> int:
        return 7 + handle[1]

    def nvmlDeviceGetComputeInstanceId(self, handle: tuple[int, int]) -> int:
        return 0

    def nvmlDeviceGetName(self, handle: int | tuple[int, int]) -> str:
        return f"NVIDIA H200 no. {handle}"

    def nvmlDeviceGetCudaComputeCapability(self, handle: int) -> list[int]:
        return [9, 0]

    def nvmlSystemGetDriverVersion(self) -> str:
        return "575.1"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        if self.cuda is None:
            raise RuntimeError("Not Supported")
        return self.cuda


@pytest.fixture
def with_nvml(monkeypatch: pytest.MonkeyPatch) -> Callable[..., hardware.Machine]:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("TOKENDYNO_DEVICE", raising=False)

    def look(
        torch: str = "2.13.0+cu130",
        built_for: tuple[int, int] | None = (13, 0),
        driver: DriverInfo | None = None,
        **nvml_fields: Any,
    ) -> hardware.Machine:
        @contextlib.contextmanager
        def nvml() -> Iterator[object]:
            yield FakeNvml(**nvml_fields)

        monkeypatch.setattr(nvidia, "nvml", nvml)
        monkeypatch.setattr(cuda_driver, "driver_info", lambda: driver or DriverInfo(problem="there is no CUDA driver"))
        monkeypatch.setattr(nvidia, "_torch_local", lambda: torch.partition("+")[2])
        monkeypatch.setattr(nvidia, "torch_cuda", lambda: built_for)
        return hardware.detect()

    return look


def test_gpus_are_read_whole(with_nvml: Callable[..., hardware.Machine]) -> None:
    machine = with_nvml()
    assert [gpu.name for gpu in machine.gpus] == ["NVIDIA H200 no. 0", "NVIDIA H200 no. 1"]
    assert (machine.device, machine.driver, machine.gpu_problem) == ("cuda", "575.1", "")
    assert machine.gpus[0].capability == (9, 0)
    assert machine.gpu_uuid == machine.describe()["uuid"] == "GPU-00f"
    assert machine.free_device_bytes == 139 * GIB


@pytest.mark.parametrize(
    ("visible", "indexes"),
    [("1", [1]), ("1,0", [1, 0]), ("0", [0]), ("GPU-1", [1]), ("GPU-10f, 0", [1, 0]), ("1,7,0", [1]), ("0,-1,1", [0])],
)
def test_the_first_gpu_is_the_one_that_torch_will_take(
    with_nvml: Callable[..., hardware.Machine], monkeypatch: pytest.MonkeyPatch, visible: str, indexes: list[int]
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.index for gpu in with_nvml().gpus] == indexes


@pytest.mark.parametrize("value", ["7", "GPU-123", "GPU-", "MIG-10c"])
def test_a_list_that_names_no_gpu_leaves_none(
    with_nvml: Callable[..., hardware.Machine], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    machine = with_nvml()
    assert (machine.device, machine.gpu_problem) == ("cpu", f"CUDA_VISIBLE_DEVICES={value} names no GPU here")


@pytest.mark.parametrize(
    ("visible", "uuids"),
    [
        (None, ["GPU-00f"]),  # a process sees a slice alone
        ("1", ["MIG-12c"]),
        ("MIG-14c", ["MIG-14c"]),
        ("MIG-GPU-10f/11/0", ["MIG-14c"]),
        ("MIG-14c,0", ["MIG-14c"]),
        ("0", ["GPU-00f"]),
    ],
)
def test_a_slice_has_its_own_memory_and_is_no_whole_card(
    with_nvml: Callable[..., hardware.Machine], monkeypatch: pytest.MonkeyPatch, visible: str | None, uuids: list[str]
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpus = with_nvml(mig={1: (2, 4)}).gpus
    assert [gpu.uuid for gpu in gpus] == uuids
    for gpu in gpus:
        part = gpu.uuid.startswith("MIG-")
        assert (gpu.memory_bytes == 18 * GIB, "MIG" in gpu.name) == (part, part)


@pytest.mark.parametrize("value", ["", "-1"])
def test_hidden_gpus_are_not_used(
    with_nvml: Callable[..., hardware.Machine], monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    machine = with_nvml()
    assert (machine.device, machine.gpu_problem) == ("cpu", "hidden by CUDA_VISIBLE_DEVICES")


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"error": RuntimeError("Driver/library version mismatch")}, "NVML says RuntimeError: Driver/library version"),
        ({"error": ImportError("no pynvml")}, "NVML says ImportError"),
        ({"count": 0}, "NVML finds no GPU"),
        ({"torch": "2.13.0+cpu"}, "the installed torch is a CPU build"),
    ],
)
def test_without_a_usable_gpu_it_says_why(
    with_nvml: Callable[..., hardware.Machine], more: dict[str, Any], problem: str
) -> None:
    machine = with_nvml(**more)
    assert machine.device == "cpu"
    assert problem in machine.gpu_problem
    assert machine.describe()["gpu"] == machine.gpu_problem
    assert len(machine.remarks) == ("torch" in more), "only a GPU that is there and not used is told at the start"


def test_a_device_that_cannot_be_asked_for_is_refused(
    with_nvml: Callable[..., hardware.Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENDYNO_DEVICE", "cuda:1")
    with pytest.raises(InputError, match=r"TOKENDYNO_DEVICE is 'cuda:1'\. Set it to cpu, .* or unset it"):
        with_nvml()


def test_a_gpu_without_memory_of_its_own_has_the_hosts(with_nvml: Callable[..., hardware.Machine]) -> None:
    machine = with_nvml(count=1, shared=True)
    (gpu,) = machine.gpus
    assert gpu.memory_bytes == machine.memory_bytes and 0 < gpu.free_bytes < gpu.memory_bytes
    assert not machine.remarks


@pytest.mark.parametrize(
    ("limit", "used", "stat", "free"),
    [
        ("max", 5 * GIB, f"inactive_file {GIB}\n", None),
        (str(4 * GIB), GIB, "anon 5\n", 3 * GIB),
        (str(4 * GIB), 3 * GIB, f"anon 5\ninactive_file {2 * GIB}\nactive_file 7\n", 3 * GIB),
        (str(4 * GIB), 5 * GIB, "", 0),
        ("nonsense", 0, "", None),
    ],
)
def test_a_control_groups_limit_counts_and_its_file_cache_does_not(
    monkeypatch: pytest.MonkeyPatch, limit: str, used: int, stat: str, free: int | None
) -> None:
    class Info(NamedTuple):
        total: int = 64 * GIB
        available: int = 60 * GIB

    files = {"max": limit, "current": str(used), "stat": stat}
    monkeypatch.setattr("psutil.virtual_memory", Info)
    monkeypatch.setattr(host, "open", lambda path, *rest: io.StringIO(files[path.rpartition(".")[2]]), raising=False)
    total, available = hardware.host_memory()
    assert available == (60 * GIB if free is None else free)
    assert total == (64 * GIB if free is None else 4 * GIB)


def test_a_driver_older_than_torch_is_said_in_a_sentence_and_the_cpu_is_used(
    with_nvml: Callable[..., hardware.Machine],
) -> None:
    machine = with_nvml(cuda=12_020, built_for=(13, 0))
    assert (machine.device, machine.gpus, machine.driver) == ("cpu", (), "575.1")
    problem = machine.gpu_problem
    assert "supports CUDA 12.2" in problem and "built for CUDA 13.0" in problem and "update the driver" in problem
    assert "the CPU is used" in problem and ". " not in problem.replace("no. ", "")
    assert machine.remarks == [f"{problem}."], "said at the start, on the page and by the command line"


CUDA_ALONE = DriverInfo((CudaDevice("NVIDIA H200", 140 * GIB, (9, 0)),), 13_000)


def test_a_gpu_is_used_without_nvml_and_what_nvml_would_tell_is_said_to_be_missing(
    with_nvml: Callable[..., hardware.Machine],
) -> None:
    machine = with_nvml(error=RuntimeError("Not Supported"), driver=CUDA_ALONE)
    assert machine.gpus == (hardware.Gpu(0, "NVIDIA H200", 140 * GIB, 140 * GIB, (9, 0)),)
    assert (machine.device, machine.gpu_problem) == ("cuda", "")
    (remark,) = machine.remarks
    assert remark.startswith("NVML says RuntimeError: Not Supported") and "n/a" in remark and "counts as free" in remark
    assert machine.describe()["nvml"] in remark
    assert with_nvml().remarks == []


def test_what_the_installed_torch_says_is_what_is_read() -> None:
    import torch

    version = torch.version.cuda
    assert nvidia.torch_cuda() == (None if version is None else tuple(int(n) for n in version.split(".")[:2]))


@pytest.mark.parametrize(
    ("torch", "system", "cuda"),
    [
        ("2.13.0+cpu", "Linux 6.1 x86_64", False),
        ("2.13.0+cu130", "Linux 6.1 x86_64", True),
        ("2.13.0", "Linux 6.1 x86_64", True),  # PyPI's
        ("2.13.0", "Darwin 24 arm64", False),
        ("", "Linux 6.1 x86_64", False),
    ],
)
def test_a_cuda_build_of_torch_is_known_without_importing_it(torch: str, system: str, cuda: bool) -> None:
    packages = (("torch", torch),) if torch else ()
    assert replace(CPU, packages=packages, system=system).torch_has_cuda is cuda
