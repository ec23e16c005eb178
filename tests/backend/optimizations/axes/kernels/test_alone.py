"""Each norm is called by itself, and must leave its own operator, or launch its own kernel."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.backend.optimizations.axes.kernels.test_axis import counted, observed, replaced  # noqa: F401
from tokendyno.backend.optimizations.axes.kernels import axis
from tokendyno.backend.optimizations.axes.kernels.alone import _RANGE, _heard, silent_norms
from tokendyno.backend.optimizations.axes.kernels.replaced import Layer

OWN = {"aten::cumsum"}


class Norm(torch.nn.Module):  # type: ignore[misc]
    """Calls the operator that stands for a kernel's so many times."""

    def __init__(self, times: int, width: int = 8) -> None:
        super().__init__()
        self.weight, self.times = torch.nn.Parameter(torch.ones(width)), times

    def forward(self, x: Any) -> Any:
        assert x.shape[-1] == len(self.weight)
        for _ in range(self.times):
            x = x.cumsum(-1)
        return x * self.weight


@pytest.mark.parametrize(
    ("times", "silent"), [((1, 1), 0), ((2, 0), 1), ((0, 3, 0), 2), ((0,), 1), ((), 0), ((5, 1, 1), 0)]
)
def test_a_norm_that_calls_its_operator_twice_does_not_speak_for_another(times: tuple[int, ...], silent: int) -> None:
    assert silent_norms([Norm(n, 4 + n) for n in times], OWN) == silent


def event(name: str, begin: int, end: int, device: str = "CPU", launch: int = 0) -> Any:
    """As the profiler's, in ns."""
    values = {"name": name, "start_ns": begin, "duration_ns": end - begin, "correlation_id": launch}
    return SimpleNamespace(
        **{k: lambda v=v: v for k, v in values.items()}, device_type=lambda: SimpleNamespace(name=device)
    )


def test_a_kernel_speaks_for_the_norm_that_launched_it_however_late_it_runs() -> None:
    first, second = event(_RANGE, 0, 10), event(_RANGE, 20, 30)
    late = [event("cudaLaunchKernel", 5, 6, launch=7), event("norm_kernel", 22, 28, "CUDA", 7)]
    assert [_heard([one, *late], {"norm_kernel"}) for one in (first, second)] == [1, 0]


@pytest.mark.parametrize(
    ("device", "kernels", "reached"),
    [("cpu", 0, (3, 6)), ("cuda", 0, (1, 2)), ("cuda", 6, (1, 2)), ("cuda", 2, (0, 2))],
)
def test_what_the_sum_hides_is_against_the_row(
    device: str,
    kernels: int,
    reached: tuple[int, int],
    replaced: list[Layer],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many calls as there should be, of one norm."""
    replaced[:] = [Layer("RMSNorm", "ours", "local", "package", Norm(n)) for n in (2, 0)]
    monkeypatch.setattr(axis, "own_names", lambda packages: {"ours::norm", "norm_kernel", *OWN})
    trace = counted(6, **({"norm_kernel": kernels} if kernels else {}))
    found = axis.AXIS.find(observed(trace, device=device))
    assert (found.reached, found.expected) == reached
    replaced[1] = Layer("RMSNorm", "ours", "local", "package", Norm(1))
    found = axis.AXIS.find(observed(trace, device=device))
    assert (found.reached == found.expected) is (kernels != 2)
