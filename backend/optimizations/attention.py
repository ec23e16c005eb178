"""Which implementation computes attention."""

from collections import Counter

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.plan import Plan

_SINKS = (
    "This architecture has attention sinks, which PyTorch's scaled_dot_product_attention cannot express; "
    "transformers refuses sdpa for it, so eager runs instead."
)


class Attention(Optimization):
    """eager or sdpa, told apart by the operators of one real forward step."""

    name = "attention"
    title = "Attention"
    summary = "Implementation of the attention function."
    default = "auto"
    order = 20
    choices = (
        Choice("auto", "auto", "What transformers takes by itself: sdpa where the model has it, else eager."),
        Choice("eager", "eager", "Plain matrix products and a softmax: every step is a kernel of its own."),
        Choice(
            "sdpa",
            "sdpa",
            "PyTorch's scaled_dot_product_attention: fused kernels where the device has them.",
            (
                Rule(
                    "fallback",
                    lambda s: s.facts.sinks,
                    _SINKS,
                    "transformers 5.22: GptOssPreTrainedModel._supports_sdpa is False",
                    becomes="eager",
                    fix=(("attention", "eager"),),
                ),
            ),
        ),
    )

    def resolve(self, name: str, subject: Subject) -> str:
        if name == "auto":
            return "eager" if subject.facts.sinks else "sdpa"
        return name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == self.resolve("auto", subject):
            return plan
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, attention=name))

    def find(self, seen: Seen) -> Finding:
        """Runs one forward step on two tokens with a fresh cache, and looks at the operators it dispatched."""
        import torch
        from torch.utils._python_dispatch import TorchDispatchMode

        ops: Counter[str] = Counter()

        class Watch(TorchDispatchMode):  # type: ignore[misc]
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
                ops[func.__name__.split(".")[0]] += 1
                return func(*args, **(kwargs or {}))

        model = seen.model
        ids = torch.tensor([[1, 2]], device=model.device)
        with torch.inference_mode(), Watch():
            model.forward(input_ids=ids, use_cache=False)
        fused = {name: n for name, n in ops.items() if "scaled_dot_product" in name}
        softmax = sum(n for name, n in ops.items() if "softmax" in name)
        if fused:
            shown = ", ".join(f"{n} x aten::{name.lstrip('_')}" for name, n in fused.items())
            return Finding(self.name, "sdpa", f"one forward step dispatched {shown}")
        return Finding(self.name, "eager", f"one forward step dispatched {softmax} x softmax and no fused attention")


AXIS = Attention()
