"""The one name under which tokendyno is imported, and what it offers to other programs: `import tokendyno as td`.

Installed, the files lie in this folder. In a checkout they lie at its top and this folder holds links to them, for
setuptools, mypy and editors; Python itself goes past the links, so that paths in tracebacks are those that git knows,
and a copy whose links were lost (an upload to the Hub drops them) runs all the same.
"""

import os
from typing import TYPE_CHECKING

_here = os.path.dirname(os.path.realpath(__file__))
if os.path.islink(f"{_here}/backend") or not os.path.isdir(f"{_here}/backend"):
    __path__.insert(0, os.path.dirname(_here))

if TYPE_CHECKING:
    from tokendyno.backend.errors import InputError, RunFailed
    from tokendyno.backend.library.commands import advise, check, compare, fit, quality, run, sweep
    from tokendyno.backend.library.model import Model, load

_OFFERED = {
    "InputError": "errors",
    "RunFailed": "errors",
    "Model": "library.model",
    "load": "library.model",
    "advise": "library.commands",
    "check": "library.commands",
    "compare": "library.commands",
    "fit": "library.commands",
    "quality": "library.commands",
    "run": "library.commands",
    "sweep": "library.commands",
}
"""Imported when it is asked for: each worker imports this module too."""

__all__ = ["InputError", "Model", "RunFailed", "advise", "check", "compare", "fit", "load", "quality", "run", "sweep"]


def __getattr__(name: str) -> object:
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.backend.{_OFFERED[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
