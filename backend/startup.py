"""A look at the installed packages at start-up: pairs that are known not to work together, in one line each."""

import importlib.metadata

from packaging.version import Version


def startup_messages() -> list[str]:
    """One sentence for every broken pair that is installed; empty when all is well.

    transformers 5.23 wants kernels >= 0.18.2, which does not exist on PyPI (0.17.2 is the newest, November
    2026): with that pair `is_kernels_available()` is False, and every hub kernel and MXFP4 is silently off.
    """
    found = {name: _version(name) for name in ("transformers", "kernels", "torch")}
    messages = []
    transformers, kernels, torch = found["transformers"], found["kernels"], found["torch"]
    if torch is None or transformers is None:
        missing = " and ".join(name for name in ("torch", "transformers") if found[name] is None)
        messages.append(f"{missing} is not installed: no model can run. Install it with: pip install -e .")
    if transformers and kernels:
        newest = transformers >= Version("5.23")
        if (newest and kernels < Version("0.18.2")) or (not newest and kernels >= Version("0.18")):
            messages.append(
                f"transformers {transformers} and kernels {kernels} do not work together: hub kernels and MXFP4 would "
                "be silently off. Install a checked pair: "
                "pip install 'transformers>=5.20,<5.23' 'kernels>=0.17.2,<0.18'"
            )
    if transformers and not Version("5.20") <= transformers < Version("5.23"):
        messages.append(f"transformers {transformers} was not checked with this version; 5.20 to 5.22 were.")
    return messages


def _version(name: str) -> Version | None:
    try:
        return Version(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return None
