"""What an axis claims about an observation."""

from tokendyno.backend.optimizations import Observation, Optimization


def verify(axis: Optimization, choice: str, observation: Observation) -> bool:
    """Whether the axis finds that choice in effect."""
    return axis.find(observation).effective == choice


def claimed(axis: Optimization, observation: Observation) -> set[str]:
    """Every choice of the axis that it finds in effect: one, or none for a finding that is not a choice."""
    return {choice.name for choice in axis.choices if verify(axis, choice.name, observation)}
