"""What the witness of an axis claims about an observation."""

from tokendyno.backend.optimizations import Optimization
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find


def claimed(axis: Optimization, observation: Observation) -> set[str]:
    """The choice of the axis that is found in effect; none for a finding that is not a choice."""
    return {find(axis.name, observation).effective} & {choice.name for choice in axis.choices}
