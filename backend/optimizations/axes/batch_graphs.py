"""Whether the steps of continuous batching are replayed as CUDA graphs."""

from tokendyno.backend.optimizations.base import Choice, ManyRequests, Subject, blocked
from tokendyno.backend.optimizations.conditions import PAGED, compute_dtype, experts_settled, only_continuous
from tokendyno.backend.plan import Plan

_RULES = (
    only_continuous("these graphs"),
    blocked(lambda s: not s.cuda, "CUDA graphs need an NVIDIA GPU.", f"{PAGED}/model_runner.py"),
    blocked(
        lambda s: s.cuda and not experts_settled(s) and s.choices["experts"] == "eager",
        "The loop over experts asks on the host which were routed to, which a CUDA graph cannot contain.",
        "transformers 5.22: integrations/moe.py",
        (("experts", "batched_mm"),),
    ),
    blocked(
        lambda s: (
            s.cuda
            and not experts_settled(s)
            and s.choices["experts"] in ("auto", "grouped_mm")
            and (compute_dtype(s) != "bfloat16" or s.machine.capability < (8, 0))
        ),
        "Other than in bfloat16 from compute capability 8.0 on, a grouped GEMM copies its offsets to the host, which a "
        "CUDA graph cannot contain.",
        "tests/gpu/test_batching.py on an H200: torch._grouped_mm in float32",
        (("experts", "batched_mm"),),
    ),
)


class BatchGraphs(ManyRequests):
    name = "batch_graphs"
    title = "Graphs of steps"
    summary = "Whether the steps of continuous batching are replayed as CUDA graphs, for rounded numbers of tokens."
    default = "off"
    off = "off"
    in_pages = True
    order = 72
    aliases = {"on": ("use_cuda_graph",)}
    choices = (
        Choice("off", "off", "The kernels of a step are launched one by one."),
        Choice(
            "on",
            "on",
            "Steps are padded to rounded sizes, captured once for each size before the run, and replayed.",
            _RULES,
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.batched(graphs=name == "on")


AXIS = BatchGraphs()
