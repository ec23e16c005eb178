"""parallel: layers that every rank holds whole, and exchanges that do not happen. The ranks are processes of their own,
so that they are broken from a `sitecustomize`."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from unittest import mock

from tests.sabotage.saboteur import Sabotage, tests_of
from tests.support.processes import sitecustomize, with_path

IN_RANKS = """
import sys
if "backend.worker.ranks" in sys.orig_argv:
    import torch.distributed as dist
    from transformers.distributed import expert_parallel, tensor_parallel
    plain = tensor_parallel._get_parameter_plan
    def left_out(parameter_name, plan, is_weight=True):
        parts = parameter_name.split(".")
        layer = int(parts[parts.index("layers") + 1]) if "layers" in parts[:-1] else 99
        return None if layer < {layers} else plain(parameter_name, plan, is_weight)
    tensor_parallel._get_parameter_plan = expert_parallel._get_parameter_plan = left_out
    if {silent}:
        dist.all_reduce = lambda *args, **kwargs: None
"""


def broken(layers: int, silent: bool = False) -> Callable[[], AbstractContextManager[None]]:
    """The first so many layers stay whole (more than there are: all else too); `silent`: nothing is added up."""

    @contextmanager
    def patch() -> Iterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            sitecustomize(Path(folder), IN_RANKS.format(layers=layers, silent=silent))
            with mock.patch.dict(os.environ, {"PYTHONPATH": with_path(Path(folder))}):
                yield

    return patch


FLOAT = (("dtype", "float32"),)
SABOTEURS = [
    Sabotage("parallel", choice, manner, patch, FLOAT, tier="full")
    for choice in ("tensor-2", "expert-2")
    for manner, patch in (
        ("one layer left whole", broken(1)),
        ("half of the layers left whole", broken(4)),
        ("a plan that does nothing", broken(100)),
        ("nothing is added up", broken(0, silent=True)),
    )
]
REASONS = {
    ("parallel", f"{kind}-{ranks}"): f"The code of {kind}-2 with another number, which is broken here."
    for kind in ("tensor", "expert")
    for ranks in (4, 8)
}
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
