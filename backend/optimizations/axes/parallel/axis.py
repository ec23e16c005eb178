"""Several devices share the model: ranks split each matrix or share whole experts out, or the layers of one process lie
on several GPUs."""

import json
from collections.abc import Mapping

import msgspec

from tokendyno.backend.evidence import Finding, Verdict
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations.axes.parallel.proof import NAME, of_device_map, of_ranks
from tokendyno.backend.optimizations.axes.parallel.rules import Named, conflict_of, impossible, instead, uneven
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import ParallelPlan, Plan
from tokendyno.backend.predict.parallel import SIZES, exchanges, sharded
from tokendyno.backend.script.parts import Script

_PLANS = "transformers 5.22: distributed/tensor_parallel.py, expert_parallel.py; backend/worker/load/parallel.py"
_MAPS = "transformers 5.22: integrations/accelerate.py; accelerate 1.15: utils/modeling.py, hooks.py"
_SEEN = "tests/backend/executors/test_ranks.py; lab/measurements.md"
COMPILED = (
    "Each rank compiles the step for itself, exchanges included. Seen in float32 with a Llama over two processes, and "
    "with Llama 3 8B and Qwen 3 0.6B over two H200s: one graph, no graph break, no recompilation, and the same greedy "
    "text as one process without compilation. The ledger counts them."
)


OWN_PLAN = "transformers has no tensor-parallel plan for gpt-oss: DistributedConfig gets one of tokendyno, as tp_plan."


def _named(name: str) -> Named:
    kind, _, devices = name.rpartition("-")
    match kind:
        case "tensor" | "expert" | "device-map":
            return Named(kind, int(devices))
    return Named("off", 1)


def ranks_of(choices: Mapping[str, str]) -> int:
    """Processes that share the model of an arm with these choices; 1 without ranks."""
    kind, devices = _named(choices.get(NAME, "off"))
    return devices if kind in ("tensor", "expert") else 1


def _choices() -> tuple[Choice, ...]:
    found = [Choice("off", "off", "One process with one device has the whole model.")]
    for ranks in SIZES:
        summary = f"Each matrix is split over {ranks} ranks, which add up their parts twice in every layer."
        found.append(Choice(f"tensor-{ranks}", f"tensor parallel, {ranks} ranks", summary))
    for ranks in SIZES:
        summary = f"Whole experts are shared out over {ranks} ranks, and all else is split as with tensor-{ranks}."
        found.append(Choice(f"expert-{ranks}", f"expert parallel, {ranks} ranks", summary))
    for gpus in SIZES:
        summary = f'One process with device_map="auto": its layers lie on {gpus} GPUs, which work one after the other.'
        found.append(Choice(f"device-map-{gpus}", f"device map, {gpus} GPUs", summary))
    return tuple(found)


class Parallel(Optimization):
    """Told by the parts that every rank holds, or where layers lie, and by what goes between devices in a profile."""

    name = NAME
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
        **{
            f"expert-{size}": (
                "ep_plan",
                "ep_size",
                "enable_expert_parallel",
                "expert parallelism",
                "DistributedConfig",
            )
            for size in SIZES
        },
        **{f"device-map-{size}": ("device_map", "max_memory", "accelerate", "balanced") for size in SIZES},
    }
    elsewhere = {
        (
            "sequential",
            "balanced_low_0",
        ): 'Of device_map only "auto" is offered, which is "balanced": "sequential" fills '
        'one GPU before the next, and "balanced_low_0" leaves room on the first.',
    }
    renamed = {
        "tp_plan": "distributed_config=DistributedConfig(tp_size=N)",
        "tp_size": "distributed_config=DistributedConfig(tp_size=N)",
        "enable_expert_parallel": "distributed_config=DistributedConfig(tp_size=N, ep_size=N)",
    }
    wishes = dict.fromkeys((f"device-map-{size}" for size in SIZES), "memory")
    costs = dict.fromkeys(("tensor-2", "expert-2"), "an exchange between all ranks after each half of a layer") | {
        "device-map-2": "copies between GPUs that wait for each other"
    }
    choices = _choices()

    def verdicts(self, name: str, subject: Subject) -> list[Verdict]:
        if name == "off":
            return []
        named = _named(name)
        source = _MAPS if named.kind == "device-map" else _PLANS
        if reason := impossible(named, subject):
            return [Verdict("blocked", self.name, reason, {NAME: instead(named, subject)}, source)]
        if conflict := conflict_of(named, subject):
            fix = {conflict.axis: conflict.allowed[0]}
            return [Verdict("blocked", self.name, conflict.reason, fix, source)]
        if named.kind == "device-map":
            said = (
                f"Memory is shared out, work is not: the layers lie on {named.devices} GPUs, which compute one after "
                "the other. That makes room for a larger model, but a token takes no less time than on one GPU, and "
                "what layers need of each other is copied between GPUs in every pass."
            )
            return [Verdict("note", self.name, said, {}, _MAPS)]
        compiled = [] if subject.choices["compile"] == "off" else [Verdict("note", self.name, COMPILED, {}, _SEEN)]
        if subject.facts.architecture == "gpt_oss":
            compiled.append(Verdict("note", self.name, OWN_PLAN, {}, _PLANS))
        if subject.cuda:
            return compiled
        whose = "the machines' cores" if subject.machine.hosts > 1 else "this CPU's cores"
        said = (
            f"Without a GPU, {named.devices} processes share {whose} and exchange through gloo. It shows "
            "how the model is split, but is slower than one process. Parts are summed in another order, so greedy text "
            "is the same only where rounding does not decide (in float32 nearly always)."
        )
        return [Verdict("note", self.name, said, {}, "lab/measurements.md"), *compiled]

    def matters(self, facts: ModelFacts) -> bool:
        return facts.kind == "decoder"

    def resolve(self, name: str, subject: Subject) -> str:
        """What cannot be split is refused, and nothing can be predicted for it."""
        named = _named(name)
        unplaced = named.kind == "device-map" and impossible(named, subject)
        return "off" if unplaced or uneven(named, subject.facts) else name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        kind, devices = _named(name)
        match kind:
            case "off":
                return plan
            case "device-map":
                found = ParallelPlan(kind, devices=devices, layers=subject.facts.layers)
            case _:
                expert = devices if kind == "expert" else 1
                facts, even = subject.facts, not uneven(_named(name), subject.facts)
                found = ParallelPlan(kind, devices, hosts=subject.machine.hosts)
                if even:
                    counted = {"sharded": sharded(facts, devices, expert), "exchanges": exchanges(facts, devices)}
                    found = msgspec.structs.replace(found, **counted)
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, parallel=found))

    def write(self, script: Script, plan: Plan) -> None:
        """Every rank runs the script: only the first prints."""
        found = plan.load.parallel
        if found.kind == "off":
            return
        if found.kind == "device-map":
            script.load["device_map"] = '"auto"'
            script.load["max_memory"] = f"{{i: torch.cuda.mem_get_info(i)[0] for i in range({found.devices})}}"
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
        shared = f", ep_size={found.expert}, ep_plan=shared_experts(model_type)" if found.expert > 1 else ""
        own = ", tp_plan=ATTENTION" if kind == "gpt_oss" else ""
        script.shown["distributed_config"] = f"DistributedConfig(tp_size={found.tensor}{shared}{own})"
        if plan.load.projections == "fused" or plan.load.kernels == "local":
            script.define("worker/patch/shards.py", "make_local")
            script.patch.insert(0, "make_local(model)")
        if found.kind == "tensor":
            script.define("worker/load/parallel.py", "add_biases_once")
            script.patch.append("add_biases_once(model, rank)")

    def find(self, observation: Observation) -> Finding:
        if observation.plan.load.parallel.kind == "device-map":
            return of_device_map(observation)
        return of_ranks(observation)


AXIS = Parallel()
