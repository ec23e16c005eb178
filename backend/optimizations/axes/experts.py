"""How a mixture of experts is computed."""

from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations.base import Choice, Optimization, Rule, When, blocked, fallback, note
from tokendyno.backend.optimizations.routed import OBSTACLES
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

_MOE = "transformers 5.22: integrations/moe.py"

_ALWAYS = (
    fallback(
        lambda s: not s.facts.experts,
        "This model has no experts, so there is nothing to choose.",
        "transformers 5.22: PreTrainedModel._can_set_experts_implementation",
        becomes="auto",
    ),
    fallback(
        lambda s: s.facts.experts > 0 and s.runs_mxfp4,
        "MXFP4 experts have their own kernels, so this choice has no effect.",
        "transformers 5.22: integrations/mxfp4.Mxfp4GptOssExperts",
        becomes="auto",
    ),
    fallback(
        lambda s: s.facts.experts > 0 and not s.runs_mxfp4 and s.takes_hub_kernels,
        "With kernels=hub a kernel may replace the whole mixture of experts, so this choice may have no effect.",
        "transformers 5.22: integrations/hub_kernels, MegaBlocksMoeMLP",
        becomes="auto",
    ),
)


def _refused(obstacle: When, reason: str) -> Rule:
    source = "presets/kernels/matvec/build/torch-cuda/experts.py"
    return blocked(lambda s: s.facts.experts > 0 and obstacle(s), reason, source)


_TRITON_RULES = (_ALWAYS[0], _ALWAYS[2], *(_refused(*obstacle) for obstacle in OBSTACLES))


class Experts(Optimization):
    name = "experts"
    title = "Experts (MoE)"
    summary = "How experts are computed: one after the other, in a grouped GEMM, from copies, or in our own kernels."
    default = "auto"
    order = 24
    leading = True
    aliases = {"": ("experts_implementation", "mixture of experts")}
    wishes = {"eager": "reference"}
    costs = {
        "eager": "time: the host waits for the routing of each layer",
        "batched_mm": "memory for copies at long prompts",
        "triton": "a second at the first token, to compile the kernels",
    }
    choices = (
        Choice("auto", "The default of transformers: grouped_mm, and on a GPU batched_mm for decoding."),
        Choice(
            "eager",
            "A loop over the routed experts: two small GEMMs each, and the host synchronizes to find out which.",
            (
                *_ALWAYS,
                note(
                    lambda s: not s.experts_settled and s.compiles,
                    "The loop needs to know on the host which experts were routed to: a graph break in every layer.",
                    _MOE,
                ),
            ),
            loss=12,
        ),
        Choice(
            "grouped_mm",
            "Tokens sorted by expert, one grouped GEMM for all; used for decoding on a GPU too.",
            (
                *_ALWAYS,
                note(
                    lambda s: not s.experts_settled and s.cuda and s.machine.capability < (8, 0),
                    "On this GPU the grouped GEMM is a loop of plain GEMMs: torch's own needs compute capability 8.0.",
                    f"{_MOE}: _can_use_grouped_mm",
                ),
                note(
                    lambda s: not s.experts_settled and s.compiles and s.compute_dtype != "bfloat16",
                    "When compiled, the grouped GEMM is a loop of plain GEMMs unless weights are bfloat16.",
                    f"{_MOE}: _can_use_grouped_mm",
                ),
            ),
            loss=11,
        ),
        Choice(
            "batched_mm",
            "The weights of each token's experts are copied for one batched GEMM: fast for single tokens, but long "
            "prompts need memory for all the copies.",
            _ALWAYS,
        ),
        Choice(
            "triton",
            "Kernels of tokendyno, which read the weights of the chosen experts where they lie, MXFP4 packed.",
            _TRITON_RULES,
            title="Triton kernels",
        ),
    )

    def matters(self, facts: ModelFacts) -> bool:
        return facts.experts > 0

    def resolve(self, name: str, subject: Subject) -> str:
        """On a CPU, and with draft tokens, auto is grouped_mm throughout; elsewhere `generate` changes to batched_mm
        for plain decoding (generation/utils.py, `_sample`). Our kernels stand in for the Hub's with MXFP4. With nothing
        left to choose, every choice is auto."""
        if name == "triton" or (name == "auto" and subject.runs_own_mxfp4):
            return "auto" if not subject.facts.experts or subject.takes_hub_kernels else "triton"
        if subject.experts_settled:
            return "auto"
        throughout = not subject.cuda or subject.drafts
        return "grouped_mm" if name == "auto" and throughout else name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == self.resolve("auto", subject) != "triton":
            return plan
        return plan.with_load(experts=name)

    def write(self, script: Script, plan: Plan) -> None:
        load = plan.load
        if load.experts == "triton":
            use = f"use_triton(model, {str(kernel_packages.ROUTED)!r})"
            script.patched("worker/patch/experts.py", use, first=True)  # before layers are replaced
            if load.quantization == "mxfp4" or (load.quantization == "none" and load.source.kind != "random"):
                script.prepared("worker/load/quantization.py", "read_packed(True)")
        elif load.experts == "grouped_mm" and load.device != "cpu":  # where `generate` decodes with batched_mm
            script.patched("worker/patch/experts.py", "set_experts(model, 'grouped_mm')")
        elif load.experts is not None:
            script.load["experts_implementation"] = repr(load.experts)
