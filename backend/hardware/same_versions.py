"""Whether processes on different machines may work together."""

from collections.abc import Mapping

SAME = ("tokendyno", "torch", "transformers")
"""Packages whose version must be the same everywhere, without the build (+cpu)."""


def version_gap(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """The first difference that matters, in a sentence about the machine `there`; "" if there is none."""
    for package in SAME:
        own, other = (versions.get(package, "none").partition("+")[0] for versions in (here, there))
        if own != other:
            return f"It has {package} {other}, the first machine {own}. Install the same version on both."
    return ""
