"""What several devices refuse, and why: choices of other axes, models that do not divide, too few devices."""

from dataclasses import dataclass
from typing import NamedTuple

from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import mxfp4
from tokendyno.backend.optimizations.conditions import runs_mxfp4, runs_own_mxfp4
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import ParallelKind
from tokendyno.backend.predict.parallel import ACROSS_RANKS, SIZES, UNTRIED, check_sizes, layers_by_device, refusal

PLAIN = ("llama", "mistral", "qwen3")
"""Architectures whose layers also run on plain tensors, as do those of gpt-oss beside experts of ours:
`backend/worker/patch/shards.py`."""


class Named(NamedTuple):
    """What the name of a choice says: how, and over how many devices."""

    kind: ParallelKind
    devices: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """A choice of another axis that cannot run on several devices, with the reason and what to set instead."""

    axis: str
    allowed: tuple[str, ...]
    reason: str


RANKS = (
    Conflict(
        "kernels",
        ("off",),
        "Across ranks, kernels that replace layers are tried only as kernels=local, in a dense Llama, Mistral or Qwen "
        "3 split with tensor parallelism and in gpt-oss with experts=triton, if the vocabulary divides evenly.",
    ),
    Conflict(
        "experts",
        ("auto", "eager", "grouped_mm", "batched_mm"),
        "Our kernels for experts are tried across ranks with gpt-oss only.",
    ),
    Conflict(
        "projections",
        ("separate",),
        "Across ranks, fused projections are tried only in a dense Llama, Mistral or Qwen 3 split with tensor "
        "parallelism, and in gpt-oss with experts=triton.",
    ),
    Conflict(
        "compile",
        ("off",),
        "torch.compile across ranks is tried only in its default mode, on the dense layers of Llama, Mistral and Qwen "
        "3 as transformers splits them; not with experts, fused projections or kernels.",
    ),
    Conflict("speculation", ("off",), "Draft tokens across ranks are untried here."),
    Conflict("batching", ("off",), "Many requests across ranks are untried here."),
    Conflict("quantization", ACROSS_RANKS, UNTRIED),
    Conflict(
        "loading", ("device_map", "no-warmup"), "Each rank reads its own part of the weights onto its own device."
    ),
)
"""Beside ranks."""

SHARED_EXPERTS = (
    Conflict(
        "experts",
        ("auto", "grouped_mm", "batched_mm", "triton"),
        "The loop over experts of transformers 5.22 fails where a token's expert lies on another rank.",
    ),
    *RANKS,
)
"""Beside ranks that have whole experts each."""

HUB_MXFP4 = Conflict(
    "experts",
    ("triton",),
    "The Hub's kernels for MXFP4 compute all experts on one device: on ranks tokendyno's do (experts=triton).",
)
"""Beside ranks whose experts stay in MXFP4."""

LAYERS = (
    Conflict("loop", ("generate",), "The custom loop keeps its buffers on one GPU: it runs whole models only."),
    Conflict("cuda_graphs", ("auto", "off"), "A step is captured on one GPU: layers on others would be left out."),
    Conflict("compile", ("off",), "torch.compile of layers on several GPUs is untried here."),
    Conflict("kernels", ("off",), "Kernels that replace layers are untried where these lie on several GPUs."),
    Conflict(
        "experts", ("auto", "eager", "grouped_mm", "batched_mm"), "Our kernels for experts know one GPU: untried here."
    ),
    Conflict("projections", ("separate",), "Fused matrices lose the hooks that move their inputs between GPUs."),
    Conflict("cache", ("dynamic", "unwindowed", "static"), "This cache is untried where layers lie on several GPUs."),
    Conflict("speculation", ("off",), "Draft tokens are untried where layers lie on several GPUs."),
    Conflict("batching", ("off",), "Many requests are untried where layers lie on several GPUs."),
    Conflict("quantization", ("none",), "Quantized weights on several GPUs are untried here."),
    Conflict("loading", ("device_map",), "The layers are spread by a device map."),
)
"""Beside a device map over several GPUs."""


def conflict_of(named: Named, subject: Subject) -> Conflict | None:
    """The first choice of another axis that is in the way."""
    if named.kind in ("tensor", "expert") and runs_mxfp4(subject) and not runs_own_mxfp4(subject):
        return HUB_MXFP4
    for one in {"device-map": LAYERS, "expert": SHARED_EXPERTS}.get(named.kind, RANKS):
        if subject.choices[one.axis] not in one.allowed and not _on_parts(one.axis, named, subject):
            return one
    return None


def uneven(named: Named, facts: ModelFacts) -> str:
    """Why this model cannot be split into so many parts, with the numbers that it can be; "" if it can."""
    if named.kind in ("off", "device-map"):
        return ""
    if named.kind == "expert" and not facts.experts:
        return f"{facts.label} has no experts to share out."
    try:
        check_sizes(facts, named.devices, named.devices if named.kind == "expert" else 1)
    except InputError as error:
        return str(error)
    return ""


def impossible(named: Named, subject: Subject) -> str:
    """Why this model cannot be shared so on this machine, in a sentence or two; "" if it can."""
    if named.kind == "device-map":
        return _unplaced(named, subject)
    facts, machine, ranks = subject.facts, subject.machine, named.devices
    if machine.zero_gpu:
        return "ZeroGPU lends one GPU to one process, and each rank is a process with a GPU of its own."
    if found := uneven(named, facts):
        return found
    if facts.source.kind == "gguf":
        return "A GGUF file is read whole by every rank: splitting it is untried here. Use the safetensors."
    quantization = subject.choices["quantization"]
    if "mxfp4" in (facts.quantization, quantization) and not runs_mxfp4(subject):
        quantization = "mxfp4-dequantized"
    if quantization.startswith("mxfp4") and not mxfp4.available(subject):
        quantization = "none"  # that axis refuses it
    if refused := refusal(facts, quantization, ranks, ranks if named.kind == "expert" else 1):
        return refused
    return _too_many(ranks, machine)


def instead(named: Named, subject: Subject) -> str:
    """The choice nearest to one that is impossible: fewer devices, or the other way to share; "off" without one."""
    others: dict[ParallelKind, tuple[ParallelKind, ...]] = {"tensor": ("expert",), "expert": ("tensor",)}
    for kind in (named.kind, *others.get(named.kind, ())):
        for size in (size for size in reversed(SIZES) if size <= named.devices):
            if not impossible(Named(kind, size), subject):
                return f"{kind}-{size}"
    return "off"


def _too_many(ranks: int, machine: Machine) -> str:
    """Why there are too few devices for so many ranks, on one machine or several; "" if there are enough."""
    hosts, what = machine.hosts, "GPU" if machine.gpus else "CPU core"
    if ranks % hosts:
        return f"{ranks} ranks cannot be shared out evenly over {hosts} machines. Take a multiple of {hosts}."
    if ranks // hosts <= machine.devices:
        return ""
    if hosts == 1:
        return f"{ranks} ranks need {ranks} {what}s; this machine has {machine.devices}."
    return f"{ranks} ranks on {hosts} machines need {ranks // hosts} {what}s on each; this one has {machine.devices}."


def _unplaced(named: Named, subject: Subject) -> str:
    """Why accelerate cannot spread the layers so."""
    facts, gpus, devices = subject.facts, len(subject.machine.gpus), named.devices
    if not subject.cuda:
        return (
            'device_map="auto" spreads layers over GPUs, and this machine has none: the whole model would lie in host '
            "memory, as without it."
        )
    if subject.machine.hosts > 1:
        return "A device map is that of one process, which has the GPUs of one machine."
    if devices > gpus:
        return f"A device map over {devices} GPUs needs {devices}; this machine has {gpus}."
    if facts.quantization or facts.source.kind == "gguf":
        return "How a packed checkpoint is spread over several GPUs is untried here."
    counts = layers_by_device(facts, subject.choices["dtype"], devices)
    if 0 in counts:
        used = sum(map(bool, counts))
        return (
            f"accelerate fills GPUs one after the other, each beyond its share: {used} of {devices} would hold all "
            f"{facts.layers} layers of {facts.label}."
        )
    return ""


def _on_parts(axis: str, named: Named, subject: Subject) -> bool:
    """Whether that choice works on parts: our kernels, of experts too, fused projections, torch.compile."""
    if axis == "experts":
        return not subject.facts.experts or (subject.choices[axis], subject.facts.architecture) == ("triton", "gpt_oss")
    routed = subject.facts.architecture == "gpt_oss" and (
        subject.choices["experts"] == "triton" or runs_own_mxfp4(subject)
    )
    if not routed and (named.kind != "tensor" or subject.facts.architecture not in PLAIN):
        return False
    if axis == "compile" and not routed:
        as_it_comes = subject.choices["projections"] == "separate" and subject.choices["kernels"] == "off"
        return as_it_comes and subject.choices["compile"] == "default"
    even = subject.facts.vocab % named.devices == 0  # else the head stays a distributed tensor, which no kernel takes
    return (axis, subject.choices[axis]) == ("projections", "fused") or (
        (axis, subject.choices[axis]) == ("kernels", "local") and even
    )
