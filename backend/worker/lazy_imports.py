"""A worker's imports, without what few plans need: hqq and torchao, which come lazily, and scipy.

transformers imports hqq (for one kind of KV cache), torchao (to save one kind of weights) and scipy (for losses)
wherever they are installed; hqq imports the whole compiler. With the first two a worker held 390 MiB after its imports,
which took 5.1 s of CPU time; without, 342 MiB and 3.9 s (median of three on two cores, torch 2.13, transformers 5.22).
"""

import contextlib
import gc
import importlib
import importlib.metadata
from collections.abc import Iterator
from typing import Any

_LATE = (  # distribution, the transformers module that imports a name from it, that name, and where it is defined
    ("hqq", "transformers.cache_utils", "HQQQuantizer", "hqq.core.quantize", "Quantizer"),
    (
        "torchao",
        "transformers.quantizers.quantizer_torchao",
        "flatten_tensor_state_dict",
        "torchao.prototype.safetensors.safetensors_support",
        "flatten_tensor_state_dict",
    ),
)

_UNUSED = "scipy"  # of losses, which nothing here computes

NEVER = 1_000_000
"""Collections of middle-aged objects after which all are gone through."""


@contextlib.contextmanager
def kept_imports() -> Iterator[None]:
    """Context in which modules are imported that stay as long as the process.

    What is young is collected along the way: its holes would lie between what stays, and a token take 2.6% longer
    (lab/measurements). What is old is not gone through for garbage: again and again that is 0.5 of the 4 s of CPU time
    that a worker's imports take, once 0.18, and it finds 2,300 of 370,000 objects. Later collections leave out what is
    here then: each would go through it for 0.2 s, and a run has several.
    """
    young, middle, old = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)
    try:
        yield
        gc.collect(1)
    finally:
        gc.freeze()
        gc.set_threshold(young, middle, old)


class Later:
    """Placeholder for a name of a package, which is imported on first attribute access or call."""

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def _real(self) -> Any:
        return getattr(importlib.import_module(self._module), self._name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._real()(*args, **kwargs)


class _Distributions(dict[str, list[str]]):
    """Import name -> distributions, as transformers looks them up: most bear the name that is imported. The standard
    library's mapping reads the list of files of every installed package, 1.1 s on a host with 250 of them."""

    _known: dict[str, list[str]] | None = None

    def get(self, name: str, default: Any = None) -> Any:
        if not name.startswith("flash_attn"):  # two distributions give it: flash-attn and flash-attn-4
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                return [importlib.metadata.distribution(name).name]
        self._known = self._known or dict(importlib.metadata.packages_distributions())
        return self._known.get(name, default)


@contextlib.contextmanager
def light_imports() -> Iterator[None]:
    """Context in which transformers imports its modules as if those packages were missing; afterwards it finds them."""
    whole = importlib.metadata.packages_distributions
    importlib.metadata.packages_distributions = _Distributions
    try:
        from transformers.utils import import_utils
    finally:
        importlib.metadata.packages_distributions = whole

    plain = import_utils._is_package_available
    hidden = {_UNUSED, *(late[0] for late in _LATE)}
    asked = (import_utils.is_hqq_available, import_utils.is_torchao_available, import_utils.is_scipy_available)

    def look(name: str, return_version: bool = False) -> Any:
        return (False, "N/A") if name in hidden else plain(name, return_version)

    def forget() -> None:
        for remembers in asked:  # they cache their answers
            remembers.cache_clear()

    forget()
    import_utils._is_package_available = look
    try:
        yield
    finally:
        import_utils._is_package_available = plain
        forget()
    for package, wants, name, module, real in _LATE:
        if plain(package)[0]:
            setattr(importlib.import_module(wants), name, Later(module, real))
