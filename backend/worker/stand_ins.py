"""Puts the code that a plan chose into a loaded model: how experts are computed, kernels in the place of layers."""

import sys
from typing import Any

from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from backend.optimizations.experts import GROUPED
from backend.plan import LoadPlan


def put_in(model: Any, plan: LoadPlan) -> None:
    """Raises what transformers and `kernels` raise where something is refused or does not load."""
    if plan.experts is not None:
        set_experts(model, plan.experts)
    if plan.kernels != "off" or "kernels" in sys.modules:  # an earlier model of this process may have left some behind
        from backend.worker import hub

        hub.apply(model, plan)


def set_experts(model: Any, name: str) -> None:
    """`name`: eager, grouped_mm or batched_mm. grouped_mm goes by a second name, which `generate` does not swap."""
    if name == "grouped_mm":
        ALL_EXPERTS_FUNCTIONS.register(GROUPED, ALL_EXPERTS_FUNCTIONS["grouped_mm"])
        name = GROUPED
    model.set_experts_implementation(name)
