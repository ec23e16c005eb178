"""In how many passes the prompt is read."""

from tokendyno.backend.optimizations.base import Choice, Optimization, blocked, note
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import GRAPH_MODES, Plan
from tokendyno.backend.script.parts import Script

SIZES = {"chunks-512": 512, "chunks-2048": 2048}
"""Tokens of the prompt in one pass."""

_CAPTURE = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs"
_CODE = "transformers 5.22: generation/utils.py, _prefill"


def _needs_mask(s: Subject) -> bool:
    """Whether attention takes a mask for a chunk, and copies grouped heads beside it. Eager always does."""
    return s.decoder and s.attention == "sdpa" and s.facts.heads != s.facts.kv_heads


_OTHER_LAYERS = blocked(
    lambda s: s.decoder and not set(s.facts.layer_kinds) <= {"full", "sliding"},
    "Other than in one pass as it comes or captured, a prompt is tried on layers with full and with sliding attention "
    "only, and this model has others.",
    "tests/backend/optimizations/axes/test_prefill.py",
)
_UNTRIED = (
    blocked(
        lambda s: s.choices["parallel"] != "off",
        "Other than in one pass a prompt is untried on several devices.",
        "backend/worker/witness/parallel.py: exchanges are counted by the passes of a profile",
        (("parallel", "off"),),
    ),
    blocked(
        lambda s: s.batches_continuously,
        "Continuous batching cuts prompts by itself: set batch_tokens.",
        "transformers 5.22: generation/continuous_batching/scheduler.py",
    ),
    blocked(
        lambda s: s.batches_statically,
        "What a static batch gave the model is counted where a prompt is read in one pass.",
        "backend/worker/runners/static_batch.py: StaticBatches",
    ),
)
_CHUNKS = (
    blocked(
        lambda s: s.drafts,
        "generate with prompt lookup reads the prompt together with its first draft tokens, in one pass: it leaves "
        "prefill_chunk_size aside.",
        "transformers 5.22: generation/utils.py, _assisted_decoding",
        (("speculation", "off"),),
    ),
    blocked(
        lambda s: s.decoder and s.cache.quantized,
        "A quantized cache gives a later chunk the rounded keys and values of the earlier ones, where a prompt in one "
        "pass attends to exact ones: the text would be another.",
        "transformers 5.22: cache_utils.py, QuantizedLayer.update",
        (("cache", "dynamic"),),
    ),
    blocked(
        lambda s: s.decoder and s.asks_to_compile and not s.own_loop,
        "generate compiles the chunks as well as the decode step, and each length that they come in is a graph of its "
        "own. The custom decode loop reads them uncompiled and compiles the step alone.",
        f"{_CODE}: get_compiled_call",
        (("loop", "own"), ("cache", "static")),
    ),
    blocked(
        lambda s: s.decoder and s.attention == "flex_attention",
        "flex_attention is compiled for each length, and every chunk attends to another one.",
        f"{_CODE}: cache_size_limit",
        (("attention", "auto"),),
    ),
    _OTHER_LAYERS,
    *_UNTRIED,
    note(
        _needs_mask,
        "A chunk needs a mask, for which sdpa copies the keys and values of all tokens so far for each query head "
        "(attention=sdpa-gqa does not): on an H200, 32,000 tokens of Llama-3-8B took 1.33 s in one pass with 3,648 MiB "
        "of temporary tensors, and in chunks of 2,048 and 512 tokens 2.03 s with 670 and 2.95 s with 535.",
        "transformers 5.22: integrations/sdpa_attention.py, use_gqa_in_sdpa; lab/measurements.md",
    ),
)


_EACH_LENGTH = note(
    lambda s: s.choices["shapes"] == "exact",
    "Each length of a prompt is captured or compiled anew, in the warm-up: shapes=buckets makes few of them.",
    "https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html",
)
_CAPTURED = (
    blocked(lambda s: not s.cuda, "CUDA graphs need a CUDA device.", _CAPTURE),
    blocked(
        lambda s: s.cuda and s.decoder and s.choices["cuda_graphs"] != "manual",
        "A pass over the prompt is captured only beside a captured step of the custom decode loop, whose cache does "
        "not move.",
        "backend/worker/loop/step.py",
        (("cuda_graphs", "manual"), ("cache", "static"), ("loop", "own")),
    ),
    blocked(
        lambda s: s.cuda and s.decoder and s.facts.experts > 0 and s.choices["experts"] != "triton",
        "Each expert's share differs from prompt to prompt. Captured passes are tried with experts=triton only.",
        "tests/gpu/test_prefill.py",
        (("experts", "triton"),),
    ),
    *_UNTRIED,
    _EACH_LENGTH,
)


_COMPILED = (
    blocked(
        lambda s: s.decoder and not (s.asks_to_compile and s.own_loop),
        "The custom decode loop compiles the pass over the prompt as it does its step; generate with a static cache "
        "compiles its step alone, and with a growing one both anyway.",
        "backend/worker/loop/step.py",
        (("compile", "default"), ("cache", "static"), ("loop", "own")),
    ),
    blocked(
        lambda s: s.decoder and s.own_loop and s.choices["compile"] in GRAPH_MODES,
        "Graphs of torch.compile are untried for a prompt. With cuda_graphs=manual its compiled pass is captured.",
        "backend/worker/loop/step.py",
        (("compile", "default"),),
    ),
    blocked(
        lambda s: s.decoder and s.facts.experts > 0,
        "A compiled pass over a prompt is untried with experts.",
        "tests/gpu/test_prefill.py",
    ),
    _OTHER_LAYERS,
    *_UNTRIED,
    _EACH_LENGTH,
)


class Prefill(Optimization):
    name = "prefill"
    title = "Prefill"
    summary = "How a prompt is read: in one pass, in chunks (chunked prefill: less memory, long prompts), or captured."
    default = "whole"
    off = "whole"
    order = 45
    decoders_only = True
    aliases = {"": ("prefill_chunk_size",)}
    wish = "memory"
    wishes = {"captured": "faster", "compiled": "faster"}
    costs = {
        "captured": "memory of the prompt's temporary tensors, kept; a graph for each length",
        "compiled": "time to compile each length",
        "chunks-512": "time to first token; of use for prompts of more than 512 tokens",
        "chunks-2048": "some time to first token; of use for prompts of more than 2,048 tokens",
    }
    choices = (
        Choice("whole", "One pass over the whole prompt."),
        *(
            Choice(
                f"chunks-{size}",
                f"Temporary tensors of {size:,} tokens at a time, however long the prompt is.",
                _CHUNKS,
                loss=loss,
                title=f"chunks of {size:,}",
            )
            for size, loss in ((512, 23), (2048, 20))
        ),
        Choice(
            "captured",
            "One pass, captured as a CUDA graph for each length and replayed: nothing waits for launches.",
            _CAPTURED,
        ),
        Choice(
            "compiled",
            "One pass, compiled for each length as the step is, and captured where the step is captured.",
            _COMPILED,
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        compiled = name == "compiled"
        return plan.with_generate(
            prefill_chunk=SIZES.get(name, 0),
            prefill_graphs=name == "captured" or (compiled and subject.choices["cuda_graphs"] == "manual"),
            prefill_compiled=compiled,
        )

    def write(self, script: Script, plan: Plan) -> None:
        """The custom decode loop reads the prompt itself: see `loop`."""
        if plan.generate.prefill_chunk and plan.generate.loop != "own":
            script.generate["prefill_chunk_size"] = str(plan.generate.prefill_chunk)
