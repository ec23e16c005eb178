"""An arm as a program writes it."""

from collections.abc import Mapping, Sequence

Arm = str | Mapping[str, str] | Sequence[str]
"""A preset, or choices: "cache=static,loop=own", the same as a list, or by axis."""


def arm_text(arm: Arm) -> str:
    """The arm as `--arm` takes it."""
    if isinstance(arm, str):
        return arm
    return ",".join(f"{axis}={choice}" for axis, choice in arm.items()) if isinstance(arm, Mapping) else ",".join(arm)
