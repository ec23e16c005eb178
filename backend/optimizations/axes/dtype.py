"""The number format of weights, activations and KV cache."""

from collections import Counter

import msgspec

from backend.evidence import Finding
from backend.optimizations.base import Choice, Optimization
from backend.optimizations.proof import Observation
from backend.optimizations.subject import Rule, Subject
from backend.plan import Plan
from backend.script.parts import Script

_TORCH = "https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch-dtype"


class Dtype(Optimization):
    """Told by the format of most weight bytes."""

    name = "dtype"
    title = "Dtype"
    summary = "Number format of weights, activations and KV cache."
    default = "auto"
    witness = "weights"
    order = 10
    choices = (
        Choice("auto", "auto", "The dtype of the checkpoint."),
        Choice(
            "bfloat16",
            "bfloat16",
            "2 bytes per number, with the range of float32.",
            loss=31,
            combines=(("cache", "dynamic"), ("cache", "offloaded")),
        ),
        Choice(
            "float16",
            "float16",
            "2 bytes per number, with more precision and less range.",
            (
                Rule(
                    "note",
                    lambda s: s.facts.dtype == "bfloat16",
                    "This checkpoint is in bfloat16; float16 overflows above 65,504, so its output may degrade.",
                    _TORCH,
                ),
            ),
        ),
        Choice("float32", "float32", "4 bytes per number: twice the memory traffic of bfloat16."),
    )

    def resolve(self, name: str, subject: Subject) -> str:
        return subject.facts.dtype if name == "auto" else name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == subject.facts.dtype:
            name = "auto"
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, dtype=name))

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.dtype != "auto":
            script.load["dtype"] = f"torch.{plan.load.dtype}"

    def find(self, observation: Observation) -> Finding:
        sizes: Counter[str] = Counter()
        for parameter in observation.model.parameters():
            if not parameter.is_floating_point() or hasattr(parameter, "__tensor_flatten__"):
                continue  # quantized: its compute dtype is that of the other weights
            sizes[str(parameter.dtype).removeprefix("torch.")] += parameter.numel() * parameter.element_size()
        main, count = sizes.most_common(1)[0]
        rest = "".join(f", {n:,} bytes in {d}" for d, n in sizes.items() if d != main)
        return Finding(self.name, main, f"weights: {count:,} bytes in {main}{rest}")


AXIS = Dtype()
