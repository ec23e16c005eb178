"""The number format of weights, activations and cache."""

from collections import Counter

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.plan import Plan
from backend.script import Script

_TORCH = "https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch-dtype"


class Dtype(Optimization):
    """The format that most bytes of the weights are in."""

    name = "dtype"
    title = "Dtype"
    summary = "Number format of weights, activations and KV cache."
    default = "auto"
    order = 10
    choices = (
        Choice("auto", "auto", "The format the checkpoint was saved in."),
        Choice("bfloat16", "bfloat16", "2 bytes a number, the range of float32."),
        Choice(
            "float16",
            "float16",
            "2 bytes a number, finer steps, a smaller range.",
            (
                Rule(
                    "note",
                    lambda s: s.facts.dtype == "bfloat16",
                    "This model was trained in bfloat16; float16 overflows above 65,504, so its text may break.",
                    _TORCH,
                ),
            ),
        ),
        Choice("float32", "float32", "4 bytes a number: twice the memory traffic of bfloat16."),
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

    def find(self, seen: Seen) -> Finding:
        sizes: Counter[str] = Counter()
        for parameter in seen.model.parameters():
            if not parameter.is_floating_point() or hasattr(parameter, "__tensor_flatten__"):
                continue  # packed: what it is computed in is the format of the rest
            sizes[str(parameter.dtype).removeprefix("torch.")] += parameter.numel() * parameter.element_size()
        main, count = sizes.most_common(1)[0]
        rest = "".join(f", {n:,} bytes in {d}" for d, n in sizes.items() if d != main)
        return Finding(self.name, main, f"weights: {count:,} bytes in {main}{rest}")


AXIS = Dtype()
