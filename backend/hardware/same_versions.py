"""Whether processes on different machines may work on one thing."""

from collections.abc import Mapping

SAME = ("tokendyno", "torch", "transformers")
"""What must have the same version everywhere; of torch without the build (+cpu)."""


def version_gap(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """The first difference that matters, in a sentence about the machine `there`; "" if there is none."""
    for package in SAME:
        own, other = (found.get(package, "none").partition("+")[0] for found in (here, there))
        if own != other:
            return f"It has {package} {other}, the first machine {own}. Install the same version on both."
    return ""
