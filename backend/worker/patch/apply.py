"""Applies a plan's patches to a loaded model: the experts implementation, and kernels that replace layers."""

import sys
from typing import Any

from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.optimizations.axes.experts import GROUPED
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.patch.experts import TRITON, use_triton
from tokendyno.backend.worker.patch.sinks import drop_sinks


def put_in(model: Any, plan: LoadPlan) -> None:
    """Raises InputError, and what transformers and `kernels` raise where a choice or a kernel is refused."""
    if not plan.sinks:
        drop_sinks(model)
    if plan.experts == TRITON:
        use_triton(model, str(kernel_packages.ROUTED))
    elif plan.experts is not None:
        set_experts(model, plan.experts)
    if plan.kernels != "off" or "kernels" in sys.modules:  # to undo those of an earlier model
        from tokendyno.backend.worker.patch import kernels

        kernels.apply(model, plan)


def set_experts(model: Any, name: str) -> None:
    """`name`: eager, batched_mm, or grouped_mm under a second name, which `generate` does not replace."""
    if name == "grouped_mm":
        ALL_EXPERTS_FUNCTIONS.register(GROUPED, ALL_EXPERTS_FUNCTIONS["grouped_mm"])
        name = GROUPED
    model.set_experts_implementation(name)
