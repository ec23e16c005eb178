"""What ends a greedy decode step, as a module: so that a kernel can stand in for it, as for a layer of the model."""

from typing import TYPE_CHECKING, Any

from torch import nn

if TYPE_CHECKING:
    from backend.worker.own import Step

NAME = "tokendyno_step_end"
"""By which a model holds the one that a kernel stands in for."""


class StepEnd(nn.Module):  # type: ignore[misc]
    """Without weights, and without a result: it writes into the tensors of the step."""

    def forward(self, logits: Any, step: "Step") -> None:
        """Logits (B, V) -> the most likely tokens are the newest ones, and everything stands at the next place."""
        step.move_on()
        step.settle(logits.argmax(-1))  # the same in half precision: what is equal there was made equal before


def of(model: Any) -> StepEnd:
    """The model's own, with what stands in for it, or a plain one."""
    held: StepEnd | None = getattr(model, NAME, None)
    return StepEnd() if held is None else held
