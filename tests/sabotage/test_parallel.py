"""parallel: layers that every rank holds whole. The ranks are processes of their own, so that they are broken from a
`sitecustomize`."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from tests.sabotage.saboteur import Patch, table, tests_of
from tests.sabotage.small_models import LAYERS, llama, mixtral
from tests.support.processes import sitecustomize, with_path

IN_RANKS = """
import sys
if "tokendyno.backend.worker.ranks" in sys.orig_argv:
    from transformers.distributed import expert_parallel, tensor_parallel
    plain = tensor_parallel._get_parameter_plan
    def left_out(parameter_name, plan, is_weight=True):
        parts = parameter_name.split(".")
        layer = int(parts[parts.index("layers") + 1]) if "layers" in parts[:-1] else 99
        return None if layer < {layers} else plain(parameter_name, plan, is_weight)
    tensor_parallel._get_parameter_plan = expert_parallel._get_parameter_plan = left_out
"""


def whole(layers: int) -> Patch:
    """The first so many layers are not split; more than there are: nothing is."""

    @contextmanager
    def patch() -> Iterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            sitecustomize(Path(folder), IN_RANKS.format(layers=layers))
            with mock.patch.dict(os.environ, {"PYTHONPATH": with_path(Path(folder))}):
                yield

    return patch


ONE, HALF = {"one layer left whole": whole(1)}, {"half of the layers left whole": whole(LAYERS // 2)}
NOTHING = {"a plan that does nothing": whole(100)}
FLOAT = {"dtype": "float32"}
SABOTEURS = [
    *table("parallel", {"tensor-2": ONE}, FLOAT, llama),
    *table("parallel", {"tensor-2": HALF | NOTHING}, FLOAT, llama, tier="full"),
    *table("parallel", {"expert-2": ONE | HALF | NOTHING}, FLOAT, mixtral, tier="full"),
]
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
