"""Told by the parts that every rank holds, or where layers lie, and by what goes between devices in a profile."""

import re
from typing import Any

import msgspec
import torch

from tokendyno.backend.evidence import Finding
from tokendyno.backend.plan import Exchanges
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import DIRECT, Trace
from tokendyno.backend.worker.prove.tensor_bytes import local_part

_WORDS = {"all_reduce": "all-reduces", "all_gather": "all-gathers"}

BETWEEN_GPUS = "Memcpy PtoP"
"""How the profiler calls a copy from one GPU to another."""


def find(observation: Observation) -> Finding:
    if observation.plan.load.parallel.kind == "device-map":
        return _of_device_map(observation)
    return _of_ranks(observation)


def _of_ranks(observation: Observation) -> Finding:
    """Counts on every rank the matrices of which it holds a part, and exchanges in a few more passes."""
    planned = observation.plan.load.parallel
    own = _split_matrices(observation.model)
    every = [msgspec.json.decode(one, type=_SplitMatrices) for one in observation.gather(msgspec.json.encode(own))]
    matrices = sum(one.matrices for one in every)
    if not matrices:
        proof = f"{len(every)} process{'es' * (len(every) > 1)}; no matrix is split"
        return Finding("parallel", "off", proof)
    trace = observation.trace()
    planned_of = _in_passes(planned.exchanges, trace)
    exchanged = sum(min(trace.collectives[kind], n) for kind, n in planned_of.items())
    seen = ", ".join(f"{trace.collectives[kind]} of {n} {_WORDS[kind]}" for kind, n in planned_of.items())
    parts = ", ".join(f"{one.part_bytes:,}" for one in every)
    proof = (
        f"{matrices // len(every)} of {planned.sharded} matrices are split over {len(every)} ranks, which hold "
        f"{parts} of their {every[0].whole_bytes:,} bytes; {seen} in {trace.steps} passes of a profile{_how(trace)}, "
        f"{_share(trace):.0%} of its time"
    )
    kind = planned.kind if len(every) == planned.ranks else "tensor"
    reached = matrices + exchanged
    expected = planned.sharded * planned.ranks + sum(planned_of.values())
    return Finding("parallel", f"{kind}-{len(every)}", proof, reached, expected)


def _in_passes(exchanges: Exchanges, trace: Trace) -> dict[str, int]:
    """Exchanges by kind that the traced passes should have.

    The custom loop launches a step ahead of those that it tells of. So the kind of which there are most, for what a
    pass has, tells how many passes there were: a pass more must not make up for a layer that exchanges nothing.
    """
    of_pass = {kind: n for kind, n in msgspec.structs.asdict(exchanges).items() if n}
    passes = max([1, trace.steps, *(-(-trace.collectives[kind] // n) for kind, n in of_pass.items())])
    return {kind: n * passes for kind, n in of_pass.items()}


def _how(trace: Trace) -> str:
    """How many of them our kernel made; "" where there is no GPU."""
    if not trace.kernels:
        return ""
    ours = sum(n for name, n in trace.kernels.items() if name.startswith(DIRECT))
    return f", {ours} of them by our kernel from GPU to GPU, the others by NCCL" if ours else ", all of them by NCCL"


def _share(trace: Trace) -> float:
    """The part of a step, or of the whole profile where it was not divided, that exchanges alone took."""
    if trace.step is not None and (parts := trace.step.parts_s):
        return parts["collectives"] / trace.step.seconds if "collectives" in parts and trace.step.seconds else 0.0
    return trace.collective_s / trace.seconds if trace.seconds else 0.0


class _SplitMatrices(msgspec.Struct):
    """The matrices of which one rank holds a part, and their bytes here and as a whole."""

    matrices: int = 0
    part_bytes: int = 0
    whole_bytes: int = 0


def _split_matrices(model: Any) -> _SplitMatrices:
    """The parts of matrices in this process: distributed tensors, and plain ones that are smaller than the model's."""
    from torch.distributed.tensor import DTensor

    found, seen = _SplitMatrices(), set[int]()
    whole = _whole_sizes(model) if any(type(one).__name__ == "SummedLinear" for one in model.modules()) else {}
    for path, module in model.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is None or parameter.ndim < 2 or name.endswith("bias"):
                continue
            names, local = [f"{path}.{name}".replace(".part.", ".")], local_part(parameter)
            if local.data_ptr() in seen:  # a tied one stands in two places
                continue
            seen.add(local.data_ptr())
            if path.endswith(".whole"):
                names = [f"{one}.{name}" for one in _fused(model, path.removesuffix(".whole"))]
            elements = parameter.numel() if isinstance(parameter, DTensor) else sum(whole.get(n, 0) for n in names)
            if local.numel() < elements:
                if not name.endswith("_scales"):  # of MXFP4: a matrix is its blocks
                    found.matrices += len(names) if parameter.ndim == 2 else parameter.shape[0]
                found.part_bytes += local.nbytes
                found.whole_bytes += elements * local.element_size()
    return found


def _whole_sizes(model: Any) -> dict[str, int]:
    """Elements of each parameter of the whole model, as its own class makes it."""
    with torch.device("meta"):
        return {name: parameter.numel() for name, parameter in type(model)(model.config).named_parameters()}


def _fused(model: Any, path: str) -> list[str]:
    """Paths of the matrices that the fused one at `path` replaces."""
    parent, later = path.rpartition(".")[0], model.get_submodule(path).later
    slices = model.get_submodule(parent).named_children()
    return [
        path,
        *(
            f"{parent}.{name}"
            for name, one in slices
            if getattr(one, "later", None) is later and f"{parent}.{name}" != path
        ),
    ]


def _of_device_map(observation: Observation) -> Finding:
    """Counts the layers that lie as a whole where accelerate's map says, all other parameters likewise, and the copies
    between GPUs in a few more passes: one at least wherever the next layer is on another GPU."""
    planned, model = observation.plan.load.parallel, observation.model
    mapped = {path: _device(place) for path, place in getattr(model, "hf_device_map", {}).items()}
    layers, others = dict[str, set[str]](), 0
    misplaced = set[str]()
    for name, parameter in model.named_parameters():
        inside = _LAYER.match(name)
        block, lies = inside.group() if inside else name, str(parameter.device)
        if inside:
            layers.setdefault(block, set()).add(lies)
        else:
            others += 1
        if lies != _mapped(name, mapped):
            misplaced.add(block)
    right = [next(iter(lies)) for block, lies in layers.items() if block not in misplaced]
    on = {device: right.count(device) for device in sorted(set(right))}
    if len(on) < 2:
        return Finding("parallel", "off", f"all layers of one process lie on {' '.join(on) or 'no device of a map'}")
    trace = observation.trace()
    copies = sum(n for name, n in trace.kernels.items() if name.startswith(BETWEEN_GPUS))
    crossings = (planned.devices - 1) * max(1, trace.steps)
    proof = (
        f"{len(right)} of {planned.layers} layers lie where accelerate's map puts them "
        f"({', '.join(f'{n} on {device}' for device, n in on.items())}); {copies} copies between GPUs in {trace.steps} "
        "passes of a profile"
    )
    reached = len(right) + others - len(misplaced - layers.keys()) + min(copies, crossings)
    return Finding("parallel", f"device-map-{len(on)}", proof, reached, planned.layers + others + crossings)


_LAYER = re.compile(r"\D*?\.\d+(?=\.)")
"""The beginning of a parameter's name that is its layer's path."""


def _device(place: Any) -> str:
    """A place of a device map, as tensors name it."""
    return f"cuda:{place}" if isinstance(place, int) else str(place)


def _mapped(name: str, mapped: dict[str, str]) -> str:
    """Where the map puts a parameter: the longest path counts; "" has the whole model."""
    paths = [path for path in mapped if path == "" or name == path or name.startswith(f"{path}.")]
    return mapped[max(paths, key=len)] if paths else ""
