"""How torch's CUDA allocator takes memory from the GPU."""

from tokendyno.backend.optimizations.base import Choice, Optimization, note
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

_DOCS = "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf"

_NO_GPU = note(lambda s: not s.cuda, "Without a GPU there is no such allocator, so this changes nothing.", _DOCS)


class Allocator(Optimization):
    name = "allocator"
    title = "CUDA allocator"
    summary = "How torch takes memory from the GPU: tensors that grow leave gaps in segments of fixed size."
    default = "fixed"
    sets = "load.allocator"
    off = "fixed"
    order = 6
    aliases = {"expandable": ("expandable_segments", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")}
    wish = "memory"
    choices = (
        Choice(
            "fixed", "torch's default: a gap is used again only by a tensor that fits into it.", title="fixed segments"
        ),
        Choice(
            "expandable",
            "Segments grow in place, so that tensors which grow, such as a KV cache, leave no gaps behind.",
            (_NO_GPU,),
            title="expandable segments",
        ),
    )

    def resolve(self, name: str, subject: Subject) -> str:
        return name if subject.cuda else self.default

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.allocator == "expandable":
            script.prepare += [
                "# the same as PYTORCH_ALLOC_CONF=expandable_segments:True",
                'torch._C._accelerator_setAllocatorSettings("expandable_segments:True")',
            ]
