"""Several devices share the model: each matrix is split over ranks, or whole experts are shared out."""

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from backend.errors import InputError
from backend.evidence import Finding, Verdict
from backend.models import ModelFacts
from backend.optimizations.base import Choice, Optimization
from backend.optimizations.conditions import runs_mxfp4
from backend.optimizations.proof import Observation, Trace
from backend.optimizations.subject import Subject
from backend.optimizations.tensor_bytes import local_part
from backend.plan import Exchanges, ParallelKind, ParallelPlan, Plan
from backend.predict.parallel import check_sizes, exchanges, refusal, sharded
from backend.script.parts import Script

SIZES = (2, 4, 8)
_PLANS = "transformers 5.22: distributed/tensor_parallel.py, expert_parallel.py; backend/worker/load/parallel.py"
PLAIN = ("llama", "mistral", "qwen3")
"""Architectures whose layers also run on plain tensors: `backend/worker/patch/shards.py`."""
_OFF = {"parallel": "off"}
_WORDS = {"all_reduce": "all-reduces", "all_gather": "all-gathers", "all_to_all": "all-to-alls"}


@dataclass(frozen=True, slots=True)
class _Conflict:
    """A choice of another axis that cannot run on several ranks, with the reason and what to set instead."""

    axis: str
    allowed: tuple[str, ...]
    reason: str


_CONFLICTS = (
    _Conflict("kernels", ("off",), "Kernels that replace layers compute whole ones: they know no other ranks."),
    _Conflict(
        "experts",
        ("auto", "eager", "grouped_mm", "batched_mm"),
        "Our kernels for experts know one device: untried here.",
    ),
    _Conflict("projections", ("separate",), "Matrices that are split over ranks are not fused: untried."),
    _Conflict("compile", ("off",), "torch.compile across ranks is untried here."),
    _Conflict("speculation", ("off",), "Draft tokens across ranks are untried here."),
    _Conflict("batching", ("off",), "Many requests across ranks are untried here."),
    _Conflict("quantization", ("none", "mxfp4-dequantized"), "Quantized weights across ranks are untried here."),
    _Conflict("loading", ("device_map",), "Each rank reads its own part of the weights onto its own device."),
)


def _named(name: str) -> tuple[ParallelKind, int]:
    """Kind and number of ranks of a choice."""
    kind, _, ranks = name.partition("-")
    return ("off", 1) if name == "off" else ("expert" if kind == "expert" else "tensor", int(ranks))


def _on_parts(axis: str, name: str, subject: Subject) -> bool:
    """Whether that choice of another axis works on the parts: fused projections, and the kernels of this repository."""
    kind, ranks = _named(name)
    if kind != "tensor" or subject.facts.architecture not in PLAIN:
        return False
    whole_head = subject.facts.tied or subject.facts.vocab % ranks  # stays a distributed tensor, which no kernel takes
    return (axis, subject.choices[axis]) == ("projections", "fused") or (
        (axis, subject.choices[axis]) == ("kernels", "local") and not whole_head
    )


def _uneven(name: str, facts: ModelFacts) -> str:
    """Why this model cannot be split into so many parts, with the numbers that it can be; "" if it can."""
    kind, ranks = _named(name)
    try:
        check_sizes(facts, ranks, ranks if kind == "expert" else 1)
    except InputError as error:
        return str(error)
    return ""


def _choices() -> tuple[Choice, ...]:
    found = [Choice("off", "off", "One process with one device has the whole model.")]
    for ranks in SIZES:
        summary = f"Each matrix is split over {ranks} ranks, which add up their parts twice in every layer."
        found.append(Choice(f"tensor-{ranks}", f"tensor parallel, {ranks} ranks", summary))
    for ranks in SIZES:
        summary = f"Whole experts are shared out over {ranks} ranks, and all else is split as with tensor-{ranks}."
        found.append(Choice(f"expert-{ranks}", f"expert parallel, {ranks} ranks", summary))
    return tuple(found)


class Parallel(Optimization):
    """Told by the parts of the matrices that every rank holds, and by the exchanges between them in a profile."""

    name = "parallel"
    title = "Several devices"
    summary = "Whether one device has the whole model, or several ranks with a device each share it."
    default = "off"
    off = "off"
    witness = "weights"
    order = 27
    decoders_only = True
    costs = dict.fromkeys(("tensor-2", "expert-2"), "an exchange between all ranks after each half of a layer")
    choices = _choices()

    def verdicts(self, name: str, subject: Subject) -> list[Verdict]:
        if name == "off":
            return []
        reason = self._impossible(name, subject)
        if reason:
            return [Verdict("blocked", self.name, reason, _OFF, _PLANS)]
        for conflict in _CONFLICTS:
            if subject.choices[conflict.axis] not in conflict.allowed and not _on_parts(conflict.axis, name, subject):
                fix = {conflict.axis: conflict.allowed[0]}
                return [Verdict("blocked", self.name, conflict.reason, fix, _PLANS)]
        if subject.cuda:
            return []
        said = (
            f"Without a GPU, {_named(name)[1]} processes share this CPU's cores and exchange through gloo. It shows "
            "how the model is split, with the same text, but is slower than one process."
        )
        return [Verdict("note", self.name, said, {}, "MEASUREMENTS.md")]

    def _impossible(self, name: str, subject: Subject) -> str:
        """Why this model cannot be split so on this machine, in a sentence or two; "" if it can."""
        kind, ranks = _named(name)
        facts, machine = subject.facts, subject.machine
        expert = ranks if kind == "expert" else 1
        if machine.zero_gpu:
            return "ZeroGPU lends one GPU to one process, and each rank is a process with a GPU of its own."
        if uneven := _uneven(name, facts):
            return uneven
        if facts.source.kind == "gguf":
            return "A GGUF file is read whole by every rank: splitting it is untried here. Use the safetensors."
        dequantized = facts.quantization == "mxfp4" and not runs_mxfp4(subject)
        quantization = "mxfp4-dequantized" if dequantized else subject.choices["quantization"]
        if refused := refusal(facts, quantization, ranks, expert):
            return refused
        devices = len(machine.gpus) if subject.cuda else machine.cores
        if ranks > devices:
            what = "GPU" if subject.cuda else "CPU core"
            return f"{ranks} ranks need {ranks} {what}s; this machine has {devices}."
        return ""

    def matters(self, facts: ModelFacts) -> bool:
        return facts.kind == "decoder"

    def resolve(self, name: str, subject: Subject) -> str:
        """What cannot be split is refused, and nothing can be predicted for it."""
        return "off" if _uneven(name, subject.facts) else name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        kind, ranks = _named(name)
        if kind == "off":
            return plan
        expert = ranks if kind == "expert" else 1
        counted = sharded(subject.facts, ranks, expert), exchanges(subject.facts, ranks, expert)
        found = ParallelPlan(kind, ranks, *counted)
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, parallel=found))

    def write(self, script: Script, plan: Plan) -> None:
        """Every rank runs the script: only the first prints."""
        found = plan.load.parallel
        if found.kind == "off":
            return
        script.imports |= {"import os", "import sys"}
        script.load.pop("device_map", None)
        if plan.load.device == "cuda":
            script.prepare.append('torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))')
        script.prepare.append('rank = int(os.environ["RANK"])')
        script.prepare.append("if rank:")
        script.prepare.append('    sys.stdout = open(os.devnull, "w")')
        script.define("worker/load/parallel.py", "distributed_config")
        kind = json.loads(plan.load.source.config_json)["model_type"] if plan.load.source.config_json else ""
        model_type = repr(kind) if kind else "AutoConfig.from_pretrained(MODEL).model_type"
        script.load["distributed_config"] = f"distributed_config({model_type}, {found.tensor}, {found.expert})"
        if plan.load.projections == "fused" or plan.load.kernels == "local":
            script.define("worker/patch/shards.py", "make_local")
            script.patch.insert(0, "make_local(model)")
        if found.kind == "tensor":
            script.define("worker/load/parallel.py", "add_biases_once")
            script.patch.append("add_biases_once(model, rank)")

    def find(self, observation: Observation) -> Finding:
        """Counts, on every rank, the matrices of which it holds a part, and each kind of exchange in a few more
        passes."""
        planned = observation.plan.load.parallel
        held = _held(observation.model)
        every = [msgspec.json.decode(one, type=_Held) for one in observation.gather(msgspec.json.encode(held))]
        matrices = sum(one.matrices for one in every)
        if not matrices:
            proof = f"{len(every)} process{'es' * (len(every) > 1)}; no matrix is split"
            return Finding(self.name, "off", proof)
        trace = observation.trace()
        planned_of = _in_passes(planned.exchanges, trace)
        exchanged = sum(min(trace.collectives[kind], n) for kind, n in planned_of.items())
        seen = ", ".join(f"{trace.collectives[kind]} of {n} {_WORDS[kind]}" for kind, n in planned_of.items())
        share = trace.collective_s / trace.seconds if trace.seconds else 0.0
        parts = ", ".join(f"{one.part_bytes:,}" for one in every)
        proof = (
            f"{matrices // len(every)} of {planned.sharded} matrices are split over {len(every)} ranks, which hold "
            f"{parts} of their {every[0].whole_bytes:,} bytes; {seen} in {trace.steps} passes of a profile, "
            f"{share:.0%} of its time"
        )
        kind = planned.kind if len(every) == planned.ranks else "tensor"
        reached = matrices + exchanged
        expected = planned.sharded * planned.ranks + sum(planned_of.values())
        return Finding(self.name, f"{kind}-{len(every)}", proof, reached, expected)


def _in_passes(exchanges: Exchanges, trace: Trace) -> dict[str, int]:
    """Exchanges by kind that the traced passes should have.

    The custom loop launches a step ahead of those that it tells of. So the kind of which there are most, for what a
    pass has, tells how many passes there were: a pass more must not make up for a layer that exchanges nothing.
    """
    of_pass = {kind: n for kind, n in msgspec.structs.asdict(exchanges).items() if n}
    passes = max([1, trace.steps, *(-(-trace.collectives[kind] // n) for kind, n in of_pass.items())])
    return {kind: n * passes for kind, n in of_pass.items()}


class _Held(msgspec.Struct):
    """The matrices of which one rank holds a part, and their bytes here and as a whole."""

    matrices: int = 0
    part_bytes: int = 0
    whole_bytes: int = 0


def _held(model: Any) -> _Held:
    """The parts of matrices in this process: distributed tensors, and plain ones that are smaller than the model's."""
    from torch.distributed.tensor import DTensor

    found, seen = _Held(), set[int]()
    whole = _whole_sizes(model) if any(type(one).__name__ == "SummedLinear" for one in model.modules()) else {}
    for path, module in model.named_modules():
        for name, parameter in module._parameters.items():
            if parameter is None or parameter.ndim < 2 or name.endswith("bias") or id(parameter) in seen:
                continue
            seen.add(id(parameter))  # a tied one stands in two places
            names, local = [f"{path}.{name}".replace(".part.", ".")], local_part(parameter)
            if path.endswith(".whole"):
                names = [f"{one}.{name}" for one in _fused(model, path.removesuffix(".whole"))]
            elements = parameter.numel() if isinstance(parameter, DTensor) else sum(whole.get(n, 0) for n in names)
            if local.numel() < elements:
                found.matrices += len(names) if parameter.ndim == 2 else parameter.shape[0]
                found.part_bytes += local.nbytes
                found.whole_bytes += elements * local.element_size()
    return found


def _whole_sizes(model: Any) -> dict[str, int]:
    """Elements of each parameter of the whole model, as its own class makes it."""
    import torch

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


AXIS = Parallel()
