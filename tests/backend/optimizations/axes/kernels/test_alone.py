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


def event(name: str, begin: int, end: int, device: str = "CPU", link: int = 0) -> Any:
    return SimpleNamespace(
        name=lambda: name,
        start_ns=lambda: begin,
        duration_ns=lambda: end - begin,
        correlation_id=lambda: link,
        device_type=lambda: SimpleNamespace(name=device),
    )


def test_a_kernel_belongs_to_the_norm_that_launched_it_whenever_it_ran() -> None:
    """The GPU may run it late; another kernel, or a launch outside of the norms, is none of theirs."""
    ranges = [event(_RANGE, 0, 10), event(_RANGE, 20, 30), event(_RANGE, 40, 50)]
    launches = [
        event("cudaLaunchKernel", 5, 6, link=1),
        event("cuLaunchKernelEx", 25, 26, link=2),
        event("cudaLaunchKernel", 35, 36, link=3),
        event("cudaLaunchKernel", 45, 46, link=4),
    ]
    kernels = [
        event("norm_kernel_0", 60, 70, "CUDA", 1),
        event("norm_kernel_0", 70, 80, "CUDA", 2),
        event("norm_kernel_0", 80, 90, "CUDA", 3),
        event("elementwise", 90, 95, "CUDA", 4),
    ]
    assert _heard([*ranges, *launches, *kernels], {"norm_kernel"}) == 2
    assert _heard([*ranges, *launches, *kernels[1:]], {"norm_kernel"}) == 1
    assert _heard([*ranges, event("ours::norm", 41, 42)], {"ours::"}) == 1


@pytest.mark.parametrize(
    ("begin", "heard"), [(5, 1), (9, 0), (2, 0), (15, 1)], ids=["in it", "after it", "before it", "elsewhere"]
)
def test_a_norm_that_computes_with_the_models_own_code_beside_its_kernel_is_not_heard(begin: int, heard: int) -> None:
    """An operator of a kernel may call what the model's code calls."""
    events = [event(_RANGE, 0, 10), event("ours::norm", 4, 8), event("aten::rsqrt", begin, begin + 1)]
    assert _heard(events, {"ours::"}) == heard
    assert _heard([*events[::2], event("ours::norm", 3, 12)], {"ours::"}) == (begin != 2)


class Both(Norm):
    """Computes with the operator that stands for a kernel's, and gives what the model's code computes."""

    def forward(self, x: Any) -> Any:
        super().forward(x)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def test_a_kernel_whose_result_is_thrown_away_is_silent() -> None:
    assert silent_norms([Norm(1), Both(1), Norm(1)], OWN) == 1


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
