"""What a checkpoint's config may not choose: the implementation of its attention and experts, and kernels of the Hub.

transformers 5.22 takes `attn_implementation` and `experts_implementation` from config.json, and downloads compiled
kernels where such a name is a repository. Here the arm chooses, and nobody else.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any

from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import ALLOWED_KERNELS

_FIELDS = {"_attn_implementation": "attention", "_experts_implementation": "experts"}


def forget_own_choices(config: Any) -> str:
    """Clear what the config, or one inside it, chose itself; returns a sentence on it, "" if it chose nothing."""
    found: dict[str, None] = {}
    for one in _nested(config):
        for field, what in _FIELDS.items():
            chosen = getattr(one, field, None)
            if chosen is not None:
                found[f"{what}={chosen}"[:80]] = None
                setattr(one, field, None)
    return f"the checkpoint's config asked for {', '.join(found)}, which the arm decides" if found else ""


def _nested(config: Any) -> Iterator[Any]:
    yield config
    for name in getattr(config, "sub_configs", {}):
        inner = getattr(config, name, None)
        if inner is not None:
            yield from _nested(inner)


def guard_kernels(env: Mapping[str, str] = os.environ) -> None:
    """From now on transformers loads no kernel of the Hub but those that are listed, where there is a list. This is the
    one function through which attention and quantized layers fetch theirs."""
    if ALLOWED_KERNELS not in env:
        return
    from transformers.integrations import hub_kernels

    plain, allowed = hub_kernels.get_kernel_hub, {name.strip() for name in env[ALLOWED_KERNELS].split(",")}
    if getattr(plain, "guarded", False):
        return

    def get_listed(name: str, *args: Any, **more: Any) -> Any:
        if name not in allowed:
            raise InputError(
                f"This model needs kernels from the Hub ({name}), which are binaries and are not downloaded here. "
                "Choose another model."
            )
        return plain(name, *args, **more)

    get_listed.guarded = True  # type: ignore[attr-defined]
    hub_kernels.get_kernel_hub = get_listed
