"""Whether the kernels of a step are launched one by one or replayed as CUDA graphs, and who captures them."""

from tokendyno.backend.optimizations.base import Choice, Optimization, blocked
from tokendyno.backend.optimizations.shared_rules import NO_EAGER_EXPERTS, needs_mode, skipped
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

_DOCS = "https://docs.pytorch.org/docs/stable/generated/torch.compile.html"
_CAPTURE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"


_NEEDS_CUDA = blocked(lambda s: not s.cuda, "CUDA graphs need a CUDA device.", _CAPTURE)
_OFF_RULES = tuple(
    blocked(
        lambda s, mode=mode: s.replays_graphs and s.choices["compile"] == mode,  # type: ignore[misc]
        f"{mode} uses CUDA graphs; without them it is the mode {plain}.",
        _DOCS,
        fix=(("compile", plain),),
    )
    for mode, plain in (("reduce-overhead", "default"), ("max-autotune", "max-autotune-no-cudagraphs"))
)
_COMPILE_RULES = (
    _NEEDS_CUDA,
    skipped(lambda s: s.cuda and s.skips_compilation, "torch.compile cannot capture CUDA graphs"),
    *needs_mode(
        "reduce-overhead",
        lambda s: s.cuda and not s.replays_graphs and not s.skips_compilation,
        "torch.compile captures CUDA graphs in the modes reduce-overhead and max-autotune only.",
        _DOCS,
    ),
)
_MANUAL_RULES = (
    _NEEDS_CUDA,
    blocked(
        lambda s: s.cuda and not s.decoder and s.choices["shapes"] == "dynamic",
        "A captured pass has the shape that it was captured with, so no size of it is symbolic.",
        _CAPTURE,
        fix=(("shapes", "buckets"),),
    ),
    blocked(
        lambda s: s.cuda and not s.decoder and s.attention == "flex_attention",
        "flex_attention compiles itself, and makes a mask of blocks for each pass: untried in captured ones.",
        "tests/gpu/test_encoder.py",
        fix=(("attention", "auto"),),
    ),
    blocked(
        lambda s: s.cuda and not s.decoder and s.choices["shapes"] != "exact" and "flash" in s.attention,
        "FlashAttention takes padding out before it computes, and asks the device where it is: a pass that "
        "synchronizes cannot be captured.",
        "transformers 5.22: modeling_flash_attention_utils.py, _get_unpad_data",
        fix=(("attention", "sdpa"),),
    ),
    blocked(
        lambda s: s.cuda and s.decoder and not s.batches_continuously and not (s.cache.fixed and s.own_loop),
        "A CUDA graph is replayed on the addresses it was captured with, so no tensor of the step may move: this "
        "needs the static cache and the custom decode loop.",
        _CAPTURE,
        fix=(("cache", "static"), ("loop", "own")),
    ),
    blocked(
        lambda s: s.replays_graphs,
        "This compile mode captures CUDA graphs itself, and captures cannot be nested.",
        _DOCS,
        fix=(("compile", "default"),),
    ),
    blocked(
        lambda s: s.cuda and s.choices["quantization"] == "bnb-int8",
        "LLM.int8() synchronizes with the host at every matrix product to check for outliers, and a step that "
        "synchronizes cannot be captured.",
        "tests/gpu/test_own.py: the capture fails on an H200 with bitsandbytes 0.50.2; nf4 and torchao's int8 pass",
        fix=(("quantization", "torchao-int8"),),
    ),
    blocked(
        lambda s: s.cuda and s.decoder and s.facts.step_waits,
        "transformers' own code of this architecture asks the device for numbers at each step, or copies some to it, "
        "and a step that synchronizes cannot be captured.",
        "transformers 5.22: a decode step without values (backend/counter/cache.py: slot_step)",
    ),
    NO_EAGER_EXPERTS,
)


class CudaGraphs(Optimization):
    name = "cuda_graphs"
    title = "CUDA graphs"
    summary = "Replay the kernels of a decode step, or of an encoder's pass, as one graph instead of launching each."
    default = "auto"
    sets = "generate.cuda_graphs"
    off = "off"
    order = 42
    leading = True
    aliases = {"": ("cudagraph", "torch.cuda.graph"), "manual": ("CUDAGraph", "torch.cuda.CUDAGraph")}
    wishes = {"off": "reference"}
    costs = {
        "off": "a launch for every kernel",
        "compile": "time to compile, memory for graphs",
        "manual": "memory for the graph; a static cache where tokens are generated",
    }
    choices = (
        Choice("auto", "As the compile mode implies: reduce-overhead and max-autotune use graphs on a GPU."),
        Choice("off", "Every kernel is launched from the host.", _OFF_RULES),
        Choice(
            "compile", "Captured and replayed by Inductor's CUDA graph trees.", _COMPILE_RULES, title="by torch.compile"
        ),
        Choice(
            "manual",
            "Captured with torch.cuda.CUDAGraph: the decode step, sampling included, or an encoder's pass.",
            _MANUAL_RULES,
            title="manual capture",
        ),
    )

    def resolve(self, name: str, subject: Subject) -> str:
        if name == "auto":
            return "compile" if subject.replays_graphs else "off"
        return name

    def write(self, script: Script, plan: Plan) -> None:
        """The custom decode loop captures its step itself: see `loop`."""
        if plan.generate.cuda_graphs == "manual" and plan.generate.loop != "own":
            script.define("worker/loop/cuda_graph.py", "CapturedPasses", "without_idle_mask")
            script.forward += ["inputs = without_idle_mask(inputs)", "forward = CapturedPasses(forward)"]
