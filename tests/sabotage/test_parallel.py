"""parallel: layers that every rank holds whole, and exchanges that do not happen. The ranks are processes of their own,
so that they are broken from a `sitecustomize`."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from unittest import mock

from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import llama, mixtral, olmo
from tests.support.processes import sitecustomize, with_path

Patch = Callable[[], AbstractContextManager[None]]
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

UNSUMMED = """
import sys
if "backend.worker.ranks" in sys.orig_argv:
    from transformers.distributed import tensor_parallel
    plain, seen = tensor_parallel.{style}.transform_output_post_forward, []
    def without(self, module, output, *args, **kwargs):
        if not any(module is one for one in seen):
            seen.append(module)
        place = next(i for i, one in enumerate(seen) if module is one)
        if place % {of_layer} == {of_layer} - 1 and place // {of_layer} < {layers}:
            return output
        return plain(self, module, output, *args, **kwargs)
    tensor_parallel.{style}.transform_output_post_forward = without
"""


SUMMED = """
import sys
if "backend.worker.ranks" in sys.orig_argv:
    import torch.distributed as dist
    plain = dist.all_reduce
    def all_reduce(tensor, *args, **more):
        {does}
    dist.all_reduce = all_reduce
"""

EMPTIED = """
import sys
if "backend.worker.ranks" in sys.orig_argv:
    import torch.distributed as dist
    from transformers import PreTrainedModel
    plain = PreTrainedModel.from_pretrained.__func__
    def load(cls, *args, **more):
        found = plain(cls, *args, **more)
        model = found[0] if isinstance(found, tuple) else found
        if dist.is_initialized() and dist.get_rank():
            model.model.layers[1].self_attn.o_proj.weight.data.zero_()
        return found
    PreTrainedModel.from_pretrained = classmethod(load)
"""


def summed(does: str) -> Patch:
    """All sums are made, to no use."""
    return in_ranks(SUMMED.format(does=does))


def unsummed(layers: int, style: str = "MoeExpertsParallel", of_layer: int = 1) -> Patch:
    """The ranks do not add up the parts of the last module in this style of each of the first so many layers, which
    have `of_layer` of them."""
    return in_ranks(UNSUMMED.format(layers=layers, style=style, of_layer=of_layer))


def broken(layers: int, silent: bool = False) -> Patch:
    """The first so many layers stay whole (more than there are: all else too); `silent`: nothing is added up."""
    return in_ranks(IN_RANKS.format(layers=layers, silent=silent))


def in_ranks(code: str) -> Patch:
    """What each rank runs before anything else."""

    @contextmanager
    def patch() -> Iterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            sitecustomize(Path(folder), code)
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
        ("one layer's experts are not added up", unsummed(1)),
        ("half of the layers' experts are not added up", unsummed(4)),
    )
] + [
    Sabotage("parallel", choice, f"{manner} is not added up, {model.__name__}", patch, FLOAT, model, tier="full",
             turns_to=("partial",))
    for choice, model, manner, patch in (
        ("tensor-2", llama, "one layer's feed-forward", unsummed(1, "RowwiseParallel", 2)),
        ("tensor-2", llama, "half of the layers' feed-forward", unsummed(2, "RowwiseParallel", 2)),
        ("tensor-2", olmo, "one layer's feed-forward", unsummed(1, "RowwiseParallel", 2)),
        ("expert-2", mixtral, "one layer's attention", unsummed(1, "RowwiseParallel")),
    )
] + [
    Sabotage("parallel", "tensor-2", manner, patch, model=model, tier="full", turns_to=("partial",))
    for model in ("pocket", llama)
    for manner, patch in (
        ("sums are thrown away", summed("return plain(tensor.clone(), *args, **more)")),
        ("sums are halved", summed("plain(tensor, *args, **more); tensor.div_(2)")),
        ("sums are the largest part", summed("return plain(tensor, *args, **more | {'op': dist.ReduceOp.MAX})")),
        ("one rank has zeros for one matrix", in_ranks(EMPTIED)),
    )
]  # fmt: skip
REASONS = {
    ("parallel", f"{kind}-{ranks}"): f"The code of {kind}-2 with another number, which is broken here."
    for kind in ("tensor", "expert")
    for ranks in (4, 8)
} | {
    ("parallel", f"device-map-{gpus}"): "Needs several GPUs: broken in tests/gpu/test_device_map.py, and on the meta "
    "device in tests/backend/optimizations/axes/parallel/test_proof.py."
    for gpus in (2, 4, 8)
}
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
