"""What may spoil a run: lowered clocks, strangers on the GPU, contended cores. NVML is a stand-in here: there is no
other way to a GPU that is throttled or refuses. tests/gpu/test_measure.py reads a real one."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from tokendyno.backend.counts import Machine
from tokendyno.backend.worker.measure.interference import (
    Cause,
    CpuProbe,
    GpuProbe,
    Nvml,
    Watch,
    of_this_bench,
    process_name,
)

OURS, STRANGER = os.getpid(), 999_999_999


class Refused(Exception):
    """Stands for pynvml.NVMLError."""


class FakeNvml:
    """Answers with what it was given; every other question is refused."""

    NVMLError = Refused

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            raise AttributeError(name)

        def ask(handle: Any, *args: Any) -> Any:
            if name not in self.answers:
                raise Refused(name)
            answer = self.answers[name]
            return answer(*args) if callable(answer) else answer

        return ask


def gpu(**answers: Any) -> Nvml:
    return Nvml(FakeNvml(**answers), None)


def process(pid: int, used: int | None = 1) -> Any:
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def busy(pid: int, percent: int, at: int = 1) -> Any:
    return SimpleNamespace(pid=pid, smUtil=percent, timeStamp=at)


# --- a GPU that refuses ---------------------------------------------------------------------------


def test_what_the_driver_refuses_is_none_and_left_out() -> None:
    silent = gpu()
    assert (silent.memory_bytes(), silent.used_bytes(), silent.energy_j(), silent.figures()) == (None, None, None, {})
    assert silent.slowed() is None and silent.other_processes() is None
    probe = GpuProbe(silent)
    probe.begin()
    assert probe.check() == [] and probe.figures() == {}, "n/a, never 0"


def test_a_quiet_gpu_is_told_from_one_that_does_not_answer() -> None:
    shown, bits = [process(OURS), process(STRANGER)], iter([0x0, 0x4, 0x0, 0x4])
    samples = iter([[], [], [busy(STRANGER, 60)], [], []])
    probe = GpuProbe(
        gpu(
            nvmlDeviceGetCurrentClocksEventReasons=lambda: next(bits),
            nvmlDeviceGetComputeRunningProcesses=shown,
            nvmlDeviceGetProcessUtilization=lambda since: next(samples),
        )
    )
    probe.begin()
    kinds = [[kind for kind, _ in probe.check()] for _ in range(4)]
    assert kinds == [[], ["throttle", "foreign"], [], ["throttle"]]
    assert probe.figures() == {"gpu_slowed_share": 0.5, "gpu_others_share": 0.25}


# --- what it reads --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0x0, []),
        (0x100, []),
        (0x4, ["power cap"]),
        (0x8, ["hardware slowdown"]),
        (0x24, ["power cap", "heat (driver)"]),
        (0x40 | 0x80, ["heat (hardware)", "power brake"]),
    ],
)
def test_an_idle_gpu_is_not_slowed_and_a_capped_one_is(bits: int, words: list[str]) -> None:
    assert gpu(nvmlDeviceGetCurrentClocksEventReasons=bits).slowed() == words


def test_strangers_are_those_that_work_and_are_not_of_this_bench() -> None:
    shown = [process(OURS), process(STRANGER)]
    for samples, expected in (
        ([busy(OURS, 99)], []),
        ([busy(STRANGER, 0)], []),
        ([busy(STRANGER, 60), busy(OURS, 40), busy(STRANGER, 70)], [STRANGER]),
    ):
        answering = gpu(
            nvmlDeviceGetComputeRunningProcesses=shown, nvmlDeviceGetProcessUtilization=lambda t, s=samples: s
        )
        assert answering.other_processes() == expected


def test_ids_of_another_space_of_processes_say_nothing() -> None:
    """In a container this very process has another number for NVML: it must not be called a stranger."""
    answering = gpu(
        nvmlDeviceGetComputeRunningProcesses=[process(STRANGER)], nvmlDeviceGetProcessUtilization=[busy(STRANGER, 99)]
    )
    assert answering.other_processes() is None


def test_memory_is_that_of_this_process_alone() -> None:
    shown = [process(STRANGER, 5), process(OURS, 7)]
    assert gpu(nvmlDeviceGetComputeRunningProcesses=shown).memory_bytes() == 7
    assert gpu(nvmlDeviceGetComputeRunningProcesses=[process(OURS, None)]).memory_bytes() is None


def test_figures_are_means_but_the_lowest_clock_the_highest_temperature_and_the_energy_between() -> None:
    clocks, heat, counter = iter([1980, 1200]), iter([60, 64]), iter([5_000, 6_000, 9_000])
    probe = GpuProbe(
        gpu(
            nvmlDeviceGetClockInfo=lambda kind: next(clocks) if kind == 1 else 2619,
            nvmlDeviceGetTemperature=lambda sensor: next(heat),
            nvmlDeviceGetPowerUsage=500_000,
            nvmlDeviceGetTotalEnergyConsumption=lambda: next(counter),
        )
    )
    probe.begin()
    probe.check()
    probe.check()
    assert probe.figures() == {
        "sm_clock_mhz": 1590,
        "sm_clock_low_mhz": 1200,
        "temperature_c": 64,
        "power_w": 500,
        "energy_j": 4.0,
    }


def test_other_workers_of_this_engine_are_no_strangers() -> None:
    assert of_this_bench(OURS)
    assert not of_this_bench(1) and not of_this_bench(STRANGER)
    assert str(OURS) in process_name(OURS) and process_name(STRANGER) == f"process {STRANGER}"


# --- the cores ------------------------------------------------------------------------------------


class Scripted(CpuProbe):
    """Core seconds as a test says: (clock, busy of all, own) a call."""

    def __init__(self, *readings: tuple[float, float, float]) -> None:
        self._readings = iter([(0.0, 0.0, 0.0), (0.0, 0.0, 0.0), *readings])
        super().__init__()
        self._cores = range(2)

    def _now(self) -> tuple[float, float, float]:
        return next(self._readings)


@pytest.mark.parametrize(
    ("busy_s", "own_s", "spoiled"),
    [
        (2.0, 1.2, True),  # every core taken, others hold 0.8 of them
        (2.0, 1.9, False),  # taken, but by this worker
        (1.13, 1.0, False),  # the page that watches
        (0.1, 0.0, False),
    ],
)
def test_cores_are_contended_when_none_is_left_and_others_hold_some(busy_s: float, own_s: float, spoiled: bool) -> None:
    probe = Scripted((1.0, busy_s, own_s))
    probe.begin()
    assert bool(probe.check()) is spoiled
    assert probe.figures() == {"cpu_others_cores": pytest.approx(busy_s - own_s)}


# --- the thread -----------------------------------------------------------------------------------


class Says(CpuProbe):
    """A probe that gives one list of causes a look, the last one for ever."""

    def __init__(self, *looks: list[Cause]) -> None:
        super().__init__()
        self._looks = list(looks)

    def begin(self) -> None:
        pass

    def check(self) -> list[Cause]:
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    def figures(self) -> dict[str, float]:
        return {"power_w": 1.0}


HOT: Cause = ("throttle", "hot")


def watched(looks: int, *probes: CpuProbe) -> Watch:
    watch = Watch(probes)
    watch.begin()
    for _ in range(looks):
        watch.check()
    watch.end()
    return watch


def test_a_cause_becomes_one_mark_when_it_is_over() -> None:
    (mark,) = watched(4, Says([], [HOT], [HOT], [])).take()
    assert (mark.kind, mark.text) == HOT
    assert mark.t_s > 0 and mark.seconds > 0


def test_a_cause_that_lasts_to_the_end_is_closed_there() -> None:
    watch = watched(3, Says([HOT]))
    (mark,) = watch.take()
    assert mark.t_s == 0 and mark.seconds > 0
    assert watch.figures() == Machine(power_w=1.0)
