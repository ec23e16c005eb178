"""Whether the steps of continuous batching are replayed as CUDA graphs."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice
from tokendyno.backend.optimizations.conditions import compute_dtype, experts_settled
from tokendyno.backend.optimizations.many_requests import PAGED, ManyRequests, only_continuous
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject, blocked
from tokendyno.backend.plan import Plan

_RULES = (
    only_continuous("these graphs"),
    blocked(
        lambda s: not s.cuda,
        "CUDA graphs need an NVIDIA GPU.",
        f"{PAGED}/model_runner.py",
        (("batch_graphs", "off"),),
    ),
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
    """Told by the steps that replayed a graph in which every layer had written into pages."""

    name = "batch_graphs"
    title = "Graphs of steps"
    summary = "Whether the steps of continuous batching are replayed as CUDA graphs, for rounded numbers of tokens."
    default = "off"
    off = "off"
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

    def find(self, observation: Observation) -> Finding:
        """A step of a new size is run and captured first."""
        if unseen := self.without_pages(observation):
            return unseen
        counts = observation.counts.pages
        steps, replays, captures = (counts.paged_steps, counts.paged_replays, counts.paged_captures)
        proof = f"{replays:,} of {steps:,} steps replayed a CUDA graph; {captures:,} were captured during the run"
        if not replays and not captures:
            return Finding(self.name, "off", proof)
        return Finding(self.name, "on", proof, replays, steps)


AXIS = BatchGraphs()
