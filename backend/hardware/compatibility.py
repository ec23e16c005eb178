"""Start-up check for installed package versions that are known not to work together."""

import importlib.metadata

from packaging.version import Version


def startup_messages() -> list[str]:
    """One sentence per problem. transformers 5.23 requires kernels >= 0.18.2, which is not on PyPI."""
    transformers, kernels, torch = (_version(name) for name in ("transformers", "kernels", "torch"))
    messages = []
    if torch is None or transformers is None:
        required = {"torch": torch, "transformers": transformers}
        missing = " and ".join(name for name, version in required.items() if version is None)
        messages.append(f"{missing} is not installed, so no model can run. Install it with: pip install -e .")
    if transformers and kernels:
        newest = transformers >= Version("5.23")
        if (newest and kernels < Version("0.18.2")) or (not newest and kernels >= Version("0.18")):
            messages.append(
                f"transformers {transformers} and kernels {kernels} do not work together: Hub kernels and MXFP4 would "
                "be silently disabled. Install a tested pair: "
                "pip install 'transformers>=5.20,<5.23' 'kernels>=0.17.2,<0.18'"
            )
    if transformers and not Version("5.20") <= transformers < Version("5.23"):
        messages.append(
            f"transformers {transformers} is untested with this version of tokendyno; 5.20 to 5.22 are tested: "
            "pip install 'transformers>=5.20,<5.23'"
        )
    return messages


def _version(name: str) -> Version | None:
    try:
        return Version(importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return None
