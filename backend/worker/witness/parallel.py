"""Told by the parts that every rank holds, or where layers lie, and by what goes between devices in a profile."""

import re
from typing import Any

import msgspec
import torch

from tokendyno.backend.evidence import Finding
from tokendyno.backend.plan import Exchanges
from tokendyno.backend.units import plural
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import DIRECT, Trace
from tokendyno.backend.worker.prove.tensor_bytes import local_part


def find(observation: Observation) -> Finding:
    """Counts on every rank the matrices of which it holds a part, and exchanges in a few more passes."""
    planned = observation.plan.load.parallel
    if planned.kind == "device-map":
        return _of_device_map(observation)
    split = _split_matrices(observation.model)
    ranks = [msgspec.json.decode(rank, type=_SplitMatrices) for rank in observation.gather(msgspec.json.encode(split))]
    matrices = sum(rank.matrices for rank in ranks)
    if not matrices:
        proof = f"{plural(len(ranks), 'process')}; no matrix is split"
        return Finding("parallel", "off", proof)
    trace = observation.trace()
    planned_calls = _in_passes(planned.exchanges, trace)
    exchanged = sum(min(trace.collectives[kind], n) for kind, n in planned_calls.items())
    words = {"all_reduce": "all-reduces", "all_gather": "all-gathers"}
    seen = ", ".join(f"{trace.collectives[kind]} of {n} {words[kind]}" for kind, n in planned_calls.items())
    parts = ", ".join(f"{rank.part_bytes:,}" for rank in ranks)
    proof = (
        f"{matrices // len(ranks)} of {planned.sharded} matrices are split over {len(ranks)} ranks, which hold "
        f"{parts} of their {ranks[0].whole_bytes:,} bytes; {seen} in {trace.steps} passes of a profile"
    )
    if direct := sum(n for name, n in trace.kernels.items() if name.startswith(DIRECT)):
        proof += f", {direct} of them by our kernel from GPU to GPU, the others by NCCL"
    elif trace.kernels:
        proof += ", all of them by NCCL"
    if (step := trace.step) is not None and step.seconds:
        proof += f", {step.parts_s.get('collectives', 0.0) / step.seconds:.0%} of its time"
    kind = planned.kind if len(ranks) == planned.ranks else "tensor"
    reached = matrices + exchanged
    expected = planned.sharded * planned.ranks + sum(planned_calls.values())
    return Finding("parallel", f"{kind}-{len(ranks)}", proof, reached, expected)


def _in_passes(exchanges: Exchanges, trace: Trace) -> dict[str, int]:
    """Exchanges by kind that the traced passes should have. The custom loop launches a step ahead of those that it
    tells of: the kind of which there are most, for what a pass has, tells how many passes there were."""
    per_pass = {kind: n for kind, n in msgspec.structs.asdict(exchanges).items() if n}
    passes = max([1, trace.steps, *(-(-trace.collectives[kind] // n) for kind, n in per_pass.items())])
    return {kind: n * passes for kind, n in per_pass.items()}


class _SplitMatrices(msgspec.Struct):
    """The matrices of which one rank holds a part, and their bytes here and as a whole."""

    matrices: int = 0
    part_bytes: int = 0
    whole_bytes: int = 0


def _split_matrices(model: Any) -> _SplitMatrices:
    """The parts of matrices in this process: distributed tensors, and plain ones that are smaller than the model's."""
    from torch.distributed.tensor import DTensor

    split, seen = _SplitMatrices(), set[int]()
    summed = any(type(module).__name__ == "SummedLinear" for module in model.modules())
    with torch.device("meta"):
        whole = type(model)(model.config) if summed else torch.nn.Module()
    sizes = {name: parameter.numel() for name, parameter in whole.named_parameters()}
    for path, module in model.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is None or parameter.ndim < 2 or name.endswith("bias"):
                continue
            names, local = [f"{path}.{name}".replace(".part.", ".")], local_part(parameter)
            if local.data_ptr() in seen:  # a tied one stands in two places
                continue
            seen.add(local.data_ptr())
            if path.endswith(".whole"):
                names = [f"{matrix}.{name}" for matrix in _fused(model, path.removesuffix(".whole"))]
            elements = parameter.numel() if isinstance(parameter, DTensor) else sum(sizes.get(n, 0) for n in names)
            if local.numel() < elements:
                if not name.endswith("_scales"):  # of MXFP4: a matrix is its blocks
                    split.matrices += len(names) if parameter.ndim == 2 else parameter.shape[0]
                split.part_bytes += local.nbytes
                split.whole_bytes += elements * local.element_size()
    return split


def _fused(model: Any, path: str) -> list[str]:
    """Paths of the matrices that the fused one at `path` replaces."""
    parent, later = path.rpartition(".")[0], model.get_submodule(path).later
    slices = model.get_submodule(parent).named_children()
    others = [f"{parent}.{name}" for name, module in slices if getattr(module, "later", None) is later]
    return [path, *(other for other in others if other != path)]


def _of_device_map(observation: Observation) -> Finding:
    """Counts the layers that lie as a whole where accelerate's map says, all other parameters likewise, and the copies
    between GPUs in a few more passes: one at least wherever the next layer is on another GPU."""
    planned, model = observation.plan.load.parallel, observation.model
    places = getattr(model, "hf_device_map", {}).items()
    mapped = {path: f"cuda:{place}" if isinstance(place, int) else str(place) for path, place in places}
    layers, rest = dict[str, set[str]](), 0
    misplaced = set[str]()
    for name, parameter in model.named_parameters():
        layer = _LAYER.match(name)
        path, device = layer.group() if layer else name, str(parameter.device)
        if layer:
            layers.setdefault(path, set()).add(device)
        else:
            rest += 1
        if device != _mapped(name, mapped):
            misplaced.add(path)
    placed = [next(iter(devices)) for path, devices in layers.items() if path not in misplaced]
    counts = {device: placed.count(device) for device in sorted(set(placed))}
    if len(counts) < 2:
        proof = f"all layers of one process lie on {' '.join(counts) or 'no device of a map'}"
        return Finding("parallel", "off", proof)
    trace = observation.trace()
    copies = sum(n for name, n in trace.kernels.items() if name.startswith("Memcpy PtoP"))  # from one GPU to another
    crossings = (planned.devices - 1) * max(1, trace.steps)
    proof = (
        f"{len(placed)} of {planned.layers} layers lie where accelerate's map puts them "
        f"({', '.join(f'{n} on {device}' for device, n in counts.items())}); {copies} copies between GPUs in "
        f"{trace.steps} passes of a profile"
    )
    reached = len(placed) + rest - len(misplaced - layers.keys()) + min(copies, crossings)
    return Finding("parallel", f"device-map-{len(counts)}", proof, reached, planned.layers + rest + crossings)


_LAYER = re.compile(r"\D*?\.\d+(?=\.)")
"""The beginning of a parameter's name that is its layer's path."""


def _mapped(name: str, mapped: dict[str, str]) -> str:
    """Where the map puts a parameter: the longest path counts; "" has the whole model."""
    paths = [path for path in mapped if path in ("", name) or name.startswith(f"{path}.")]
    return mapped[max(paths, key=len)] if paths else ""
