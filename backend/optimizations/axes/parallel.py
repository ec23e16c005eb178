"""Several devices share the model: as ranks, or as GPUs with some layers each."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from tokendyno.backend.errors import InputError
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import ParallelKind, ParallelPlan, Plan
from tokendyno.backend.predict.parallel import (
    ACROSS_RANKS,
    SIZES,
    UNTRIED,
    check_sizes,
    exchanges,
    layers_by_device,
    refusal,
    sharded,
)
from tokendyno.backend.script.parts import Script

PLAIN = ("llama", "mistral", "qwen3")
"""Architectures whose layers also run on plain tensors, as do those of gpt-oss beside experts of ours:
`backend/worker/patch/shards.py`."""


class Layout(NamedTuple):
    """What the name of a choice says: how, and over how many devices."""

    kind: ParallelKind
    devices: int

    @property
    def expert(self) -> int:
        """Ranks over which whole experts are shared out."""
        return self.devices if self.kind == "expert" else 1


class Conflict(NamedTuple):
    """A choice of another axis that cannot run on several devices, with the reason and what to set instead."""

    axis: str
    allowed: tuple[str, ...]
    reason: str


_REPLACED = (
    "Across ranks, fused projections and kernels=local are tried only in a dense Llama, Mistral or Qwen 3 split with "
    "tensor parallelism, and in gpt-oss with experts=triton; these kernels if the vocabulary divides evenly."
)
RANKS = (
    Conflict("kernels", ("off",), _REPLACED),
    Conflict(
        "experts",
        ("auto", "eager", "grouped_mm", "batched_mm"),
        "Our kernels for experts are tried across ranks with gpt-oss only.",
    ),
    Conflict("projections", ("separate",), _REPLACED),
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
"""What cannot be combined with ranks."""

SHARED_EXPERTS = (
    Conflict(
        "experts",
        ("auto", "grouped_mm", "batched_mm", "triton"),
        "The loop over experts of transformers 5.22 fails where a token's expert lies on another rank.",
    ),
    *RANKS,
)
"""What cannot be combined with ranks that have whole experts each."""

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
"""What cannot be combined with a device map over several GPUs."""


def conflict_of(layout: Layout, subject: Subject) -> Conflict | None:
    if layout.kind in ("tensor", "expert") and subject.runs_mxfp4 and not subject.runs_own_mxfp4:
        reason = (
            "The Hub's kernels for MXFP4 compute all experts on one device: on ranks tokendyno's do (experts=triton)."
        )
        return Conflict("experts", ("triton",), reason)
    for conflict in {"device-map": LAYERS, "expert": SHARED_EXPERTS}.get(layout.kind, RANKS):
        if subject.choices[conflict.axis] not in conflict.allowed and not _on_parts(conflict.axis, layout, subject):
            return conflict
    return None


def uneven(layout: Layout, facts: ModelFacts) -> str:
    """Why this model cannot be split into so many parts, with the numbers that it can be; "" if it can."""
    if layout.kind in ("off", "device-map"):
        return ""
    if layout.kind == "expert" and not facts.experts:
        return f"{facts.label} has no experts to share out."
    try:
        check_sizes(facts, layout.devices, layout.expert)
    except InputError as error:
        return str(error)
    return ""


def impossible(layout: Layout, subject: Subject) -> str:
    """Why this model cannot be shared so on this machine, in a sentence or two; "" if it can."""
    if layout.kind == "device-map":
        return _unplaced(layout, subject)
    facts, machine, ranks = subject.facts, subject.machine, layout.devices
    if machine.zero_gpu:
        return "ZeroGPU lends one GPU to one process, and each rank is a process with a GPU of its own."
    if reason := uneven(layout, facts):
        return reason
    if facts.source.kind == "gguf":
        return "A GGUF file is read whole by every rank: splitting it is untried here. Use the safetensors."
    quantization = subject.choices["quantization"]
    if "mxfp4" in (facts.quantization, quantization) and not subject.runs_mxfp4:
        quantization = "mxfp4-dequantized"
    if quantization.startswith("mxfp4") and not subject.has_mxfp4:
        quantization = "none"  # that axis refuses it
    return refusal(facts, quantization, ranks, layout.expert) or _too_many(ranks, machine)


def instead(layout: Layout, subject: Subject) -> str:
    """The choice nearest to one that is impossible: fewer devices, or the other way to share; "off" without one."""
    other: dict[ParallelKind, tuple[ParallelKind, ...]] = {"tensor": ("expert",), "expert": ("tensor",)}
    for kind in (layout.kind, *other.get(layout.kind, ())):
        for size in (size for size in reversed(SIZES) if size <= layout.devices):
            if not impossible(Layout(kind, size), subject):
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


def _unplaced(layout: Layout, subject: Subject) -> str:
    """Why accelerate cannot spread the layers so."""
    facts, gpus, devices = subject.facts, len(subject.machine.gpus), layout.devices
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


def _on_parts(axis: str, layout: Layout, subject: Subject) -> bool:
    """Whether that axis's choice works on parts: our kernels, of experts too, fused projections, torch.compile."""
    choices, architecture = subject.choices, subject.facts.architecture
    if axis == "experts":
        return not subject.facts.experts or (choices["experts"], architecture) == ("triton", "gpt_oss")
    routed = architecture == "gpt_oss" and (choices["experts"] == "triton" or subject.runs_own_mxfp4)
    if not routed and (layout.kind != "tensor" or architecture not in PLAIN):
        return False
    if axis == "compile" and not routed:
        return (choices["projections"], choices["kernels"], choices["compile"]) == ("separate", "off", "default")
    even = subject.facts.vocab % layout.devices == 0  # else the head stays a distributed tensor, which no kernel takes
    return (axis, choices[axis]) == ("projections", "fused") or ((axis, choices[axis]) == ("kernels", "local") and even)


_PLANS = "transformers 5.22: distributed/tensor_parallel.py, expert_parallel.py; backend/worker/load/parallel.py"
_MAPS = "transformers 5.22: integrations/accelerate.py; accelerate 1.15: utils/modeling.py, hooks.py"
_SEEN = "tests/backend/executors/test_ranks.py; lab/measurements.md"
COMPILED = (
    "Each rank compiles the step for itself, exchanges included: seen on two H200s with Llama 3 8B and Qwen 3 0.6B, as "
    "one graph with the greedy text of one process. The ledger counts graphs and their breaks."
)
OWN_PLAN = "transformers has no tensor-parallel plan for gpt-oss: DistributedConfig gets one of tokendyno, as tp_plan."


def _layout_of(name: str) -> Layout:
    kind, _, devices = name.rpartition("-")
    match kind:
        case "tensor" | "expert" | "device-map":
            return Layout(kind, int(devices))
    return Layout("off", 1)


def ranks_of(choices: Mapping[str, str]) -> int:
    """Processes that share the model of an arm with these choices; 1 without ranks."""
    kind, devices = _layout_of(choices.get("parallel", "off"))
    return devices if kind in ("tensor", "expert") else 1


def _choices() -> tuple[Choice, ...]:
    choices = [Choice("off", "One process with one device has the whole model.")]
    for ranks in SIZES:
        summary = f"Each matrix is split over {ranks} ranks, which add up their parts twice in every layer."
        choices.append(Choice(f"tensor-{ranks}", summary, title=f"tensor parallel, {ranks} ranks"))
    for ranks in SIZES:
        summary = f"Whole experts are shared out over {ranks} ranks, and all else is split as with tensor-{ranks}."
        choices.append(Choice(f"expert-{ranks}", summary, title=f"expert parallel, {ranks} ranks"))
    for gpus in SIZES:
        summary = f'One process with device_map="auto": its layers lie on {gpus} GPUs, which work one after the other.'
        choices.append(Choice(f"device-map-{gpus}", summary, title=f"device map, {gpus} GPUs"))
    return tuple(choices)


class Parallel(Optimization):
    name = "parallel"
    title = "Several devices"
    summary = "Whether one device has the whole model, or several share it: ranks that work together, or a device map."
    default = "off"
    off = "off"
    witness = "weights"
    order = 27
    decoders_only = True
    aliases = {
        "": ("multi-gpu",),
        **{f"tensor-{size}": ("tp_plan", "tp_size", "tensor parallelism", "DistributedConfig") for size in SIZES},
        **dict.fromkeys(
            (f"expert-{size}" for size in SIZES),
            ("ep_plan", "ep_size", "enable_expert_parallel", "expert parallelism", "DistributedConfig"),
        ),
        **{f"device-map-{size}": ("device_map", "max_memory", "accelerate", "balanced") for size in SIZES},
    }
    renamed = {
        "tp_plan": "distributed_config=DistributedConfig(tp_size=N)",
        "tp_size": "distributed_config=DistributedConfig(tp_size=N)",
        "enable_expert_parallel": "distributed_config=DistributedConfig(tp_size=N, ep_size=N)",
    }
    wishes = dict.fromkeys((f"device-map-{size}" for size in SIZES), "memory")
    choices = _choices()
    costs = {
        choice.name: "copies between GPUs that wait for each other"
        if choice.name.startswith("device-map")
        else "an exchange between all ranks after each half of a layer"
        for choice in choices[1:]
    }

    def verdicts(self, name: str, subject: Subject) -> list[Verdict]:
        if name == "off":
            return []
        layout = _layout_of(name)
        source = _MAPS if layout.kind == "device-map" else _PLANS
        if reason := impossible(layout, subject):
            return [Verdict("blocked", self.name, reason, {self.name: instead(layout, subject)}, source)]
        if conflict := conflict_of(layout, subject):
            fix = {conflict.axis: conflict.allowed[0]}
            return [Verdict("blocked", self.name, conflict.reason, fix, source)]
        if layout.kind == "device-map":
            reason = (
                f"Memory is shared out, work is not: the layers lie on {layout.devices} GPUs, which compute one after "
                "the other. That makes room for a larger model, but a token takes no less time than on one GPU."
            )
            return [Verdict("note", self.name, reason, {}, _MAPS)]
        notes = [] if subject.choices["compile"] == "off" else [Verdict("note", self.name, COMPILED, {}, _SEEN)]
        if subject.facts.architecture == "gpt_oss":
            notes.append(Verdict("note", self.name, OWN_PLAN, {}, _PLANS))
        if subject.cuda:
            return notes
        whose = "the machines' cores" if subject.machine.hosts > 1 else "this CPU's cores"
        reason = (
            f"Without a GPU, {layout.devices} processes share {whose} and exchange through gloo. It shows "
            "how the model is split, but is slower than one process. Parts are summed in another order, so greedy text "
            "is the same only where rounding does not decide (in float32 nearly always)."
        )
        return [Verdict("note", self.name, reason, {}, "lab/measurements.md"), *notes]

    def resolve(self, name: str, subject: Subject) -> str:
        """What cannot be split is refused, and predicted as if it were off."""
        layout = _layout_of(name)
        unplaced = layout.kind == "device-map" and impossible(layout, subject)
        return "off" if unplaced or uneven(layout, subject.facts) else name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        layout, facts, hosts = _layout_of(name), subject.facts, subject.machine.hosts
        kind, devices = layout
        if kind == "off":
            return plan
        if kind == "device-map":
            parallel = ParallelPlan(kind, devices=devices, layers=facts.layers)
        elif uneven(layout, facts):
            parallel = ParallelPlan(kind, devices, hosts=hosts)
        else:
            split, exchanged = sharded(facts, devices, layout.expert), exchanges(facts, devices)
            parallel = ParallelPlan(kind, devices, split, exchanged, hosts=hosts)
        return plan.with_load(parallel=parallel)

    def write(self, script: Script, plan: Plan) -> None:
        """Every rank runs the script: only the first prints."""
        parallel = plan.load.parallel
        if parallel.kind == "off":
            return
        if parallel.kind == "device-map":
            script.load["device_map"] = '"auto"'
            script.load["max_memory"] = f"{{i: torch.cuda.mem_get_info(i)[0] for i in range({parallel.devices})}}"
            return
        script.imports |= {"import os", "import sys"}
        script.load.pop("device_map", None)
        if plan.load.device == "cuda":
            script.prepare.append('torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))')
        script.prepare += ['rank = int(os.environ["RANK"])', "if rank:", '    sys.stdout = open(os.devnull, "w")']
        script.define("worker/load/parallel.py", "distributed_config")
        architecture = json.loads(plan.load.source.config_json)["model_type"] if plan.load.source.config_json else ""
        model_type = repr(architecture) if architecture else "AutoConfig.from_pretrained(MODEL).model_type"
        script.load["distributed_config"] = f"distributed_config({model_type}, {parallel.tensor}, {parallel.expert})"
        shared = f", ep_size={parallel.expert}, ep_plan=shared_experts(model_type)" if parallel.expert > 1 else ""
        own = ", tp_plan=ATTENTION" if architecture == "gpt_oss" else ""
        script.shown["distributed_config"] = f"DistributedConfig(tp_size={parallel.tensor}{shared}{own})"
        if plan.load.projections == "fused" or plan.load.kernels == "local":
            script.patched("worker/patch/shards.py", "make_local(model)", first=True)
        if parallel.kind == "tensor":
            script.patched("worker/load/parallel.py", "add_biases_once(model, rank)")
