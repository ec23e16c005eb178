"""The number format of weights, activations and KV cache."""

from tokendyno.backend.optimizations.base import Choice, Optimization, Rule, note
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.units import three

_CPU = "measured: docs/figures.md, Memory"


def _slower(s: Subject) -> str:
    """The measurement by which bfloat16 is slower on this CPU, in words."""
    slow = s.slow_bfloat16
    assert slow is not None
    return (
        f"on this CPU, products of {slow.weight_bytes >> 20} MiB of bfloat16 weights took {three(slow.ratio)} times as "
        f"long as in float32 (batch {slow.rows})."
    )


_CLIMBS = note(
    lambda s: s.decoder and not s.cuda and s.cache.grows and s.attention == "eager",
    "On a CPU, memory climbs by about 1.3 MiB a token, up to 0.9 GiB: eager attention over a growing cache multiplies "
    "matrices of a new shape at every token, and bfloat16 kernels are built and cached for each length. float32 and a "
    "static cache do not climb.",
    _CPU,
)
_SETTLED = Rule(
    "note",
    lambda s: s.slow_bfloat16 is not None,
    lambda s: f"auto -> float32: {_slower(s)} dtype=bfloat16 keeps the checkpoint's format.",
    _CPU,
    "float32",
    (),
)
_SLOWER = note(lambda s: s.slow_bfloat16 is not None, lambda s: f"float32 is faster: {_slower(s)}", _CPU)
_EMULATED = note(
    lambda s: s.cuda and s.compute_dtype == "bfloat16" and s.machine.capability < (8, 0),
    "This GPU has no bfloat16 arithmetic, which begins with compute capability 8.0 (Ampere): products run without "
    "Tensor Cores, which float16 would use.",
    "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
)


class Dtype(Optimization):
    name = "dtype"
    title = "Dtype"
    summary = "Number format of weights, activations and KV cache."
    default = "auto"
    witness = "weights"
    order = 10
    wish = "numerics"
    aliases = {
        "": ("torch_dtype", "precision"),
        "bfloat16": ("bf16",),
        "float16": ("fp16", "half"),
        "float32": ("fp32", "full precision"),
    }
    renamed = {"torch_dtype": "dtype"}
    costs = {
        "bfloat16": "precision: 8 bits of it",
        "float16": "range: values past 65,504 overflow",
        "float32": "twice the memory of 16 bits",
    }
    choices = (
        Choice(
            "auto",
            "The dtype of the checkpoint; on a CPU float32 where bfloat16 was measured to be slower.",
            (_EMULATED, _SETTLED),
        ),
        Choice(
            "bfloat16",
            "2 bytes per number, with the range of float32.",
            (_CLIMBS, _SLOWER, _EMULATED),
            loss=31,
        ),
        Choice(
            "float16",
            "2 bytes per number, with more precision and less range.",
            (
                note(
                    lambda s: s.facts.dtype == "bfloat16",
                    "This checkpoint is in bfloat16; float16 overflows above 65,504, so its output may degrade.",
                    "https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch-dtype",
                ),
            ),
        ),
        Choice("float32", "4 bytes per number: twice the memory traffic of bfloat16."),
    )

    def resolve(self, name: str, subject: Subject) -> str:
        return subject.dtype_of(name)

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.with_load(dtype="auto" if name == subject.facts.dtype else name)

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.dtype != "auto":
            script.load["dtype"] = f"torch.{plan.load.dtype}"
