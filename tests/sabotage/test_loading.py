"""Loading: on a CPU nothing is moved, so no row is ever green there."""

from backend.optimizations import all_axes

_AXIS = next(axis for axis in all_axes() if axis.name == "loading")
REASONS = {
    ("loading", choice.name): "Without a GPU nothing is moved: tests/gpu/test_sabotage.py." for choice in _AXIS.choices
}
