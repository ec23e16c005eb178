"""Many requests: how they share the model, and the steps of continuous batching."""

from tokendyno.backend.optimizations.base import Choice, ManyRequests, Rule, blocked, note
from tokendyno.backend.optimizations.shared_rules import NO_EAGER_EXPERTS
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import Plan

_PAGED = "transformers 5.22: generation/continuous_batching"


def _only_continuous(what: str) -> Rule:
    return blocked(
        lambda s: not s.batches_continuously,
        f"Only continuous batching has {what}.",
        _PAGED,
        (("batching", "continuous"),),
    )


_PAGED_ATTENTION = (
    "eager",
    "sdpa",
    "flash_attention_2",
    "flash_attention_3",
    "kernels-community/flash-attn2",
    "kernels-community/vllm-flash-attn3",
)

_NO_DRAFTS = blocked(
    lambda s: s.drafts,
    "Prompt lookup drafts for a single sequence; a batch has several, and it verifies no drafts.",
    "transformers 5.22: generation/candidate_generator.py",
    (("speculation", "off"),),
)

_CONTINUOUS = (
    blocked(
        lambda s: s.decoder and not s.facts.fits_pages,
        "Continuous batching keeps pages of keys and values, of one size in all layers with full and with sliding "
        "attention. This model keeps something else (states, latents, chunks), shares keys and values between layers, "
        "or has attention that reads no pages.",
        f"{_PAGED}/cache.py: ATTN_TYPE_TO_ALLOCATOR, PagedAttentionCache",
        (("batching", "static"),),
    ),
    blocked(
        lambda s: s.decoder and s.attention not in _PAGED_ATTENTION,
        "Continuous batching accepts eager, sdpa, FlashAttention 2 and FlashAttention 3 only.",
        f"{_PAGED}/continuous_api.py: switch_to_cb_friendly_attn",
        (("attention", "auto"),),
    ),
    blocked(
        lambda s: s.decoder and s.cache.name != "dynamic",
        "Continuous batching has a KV cache of its own, in pages; no other cache can be chosen with it.",
        f"{_PAGED}/cache.py: PagedAttentionCache",
        (("cache", "dynamic"),),
    ),
    _NO_DRAFTS,
    blocked(
        lambda s: s.decoder and (s.own_loop or s.choices["cuda_graphs"] == "manual"),
        "Continuous batching has a loop and CUDA graphs of its own (batch_graphs).",
        f"{_PAGED}/continuous_api.py",
        (("loop", "generate"), ("cuda_graphs", "auto")),
    ),
    blocked(
        lambda s: s.choices["compile"] != "off",
        "Compiled steps of continuous batching are not offered: its attention is excluded from compilation, so that a "
        "step breaks into two graphs a layer.",
        "transformers 5.22: integrations/eager_paged.py, PagedAttentionCache.update",
        (("compile", "off"), ("compile_cache", "torch"), ("shapes", "exact")),
    ),
    blocked(
        lambda s: s.choices["shapes"] != "exact",
        "Steps of continuous batching have no padded shapes: prompts follow each other in one row.",
        f"{_PAGED}/input_outputs.py",
        (("shapes", "exact"),),
    ),
    note(
        lambda s: s.decoder and s.cuda and s.choices["batch_graphs"] == "off",
        "Launched one by one, its steps lose to static batches: on an H200, Llama-3-8B served 202 useful tokens/s so, "
        "765 in compiled static batches, and 1,359 with CUDA graphs and FlashAttention 3.",
        "docs/figures.md: Many requests",
        fix=(("batch_graphs", "on"),),
    ),
    note(
        lambda s: s.decoder and s.cuda and s.choices["batch_graphs"] == "on" and "flash" not in s.choices["attention"],
        "Only flash attention reads keys and values where they lie in pages. Otherwise they are copied together in "
        "each step, and each token is compared with those of all requests: on an H200, Llama-3-8B served 816 useful "
        "tokens/s so, and 1,359 with FlashAttention 3.",
        "docs/figures.md: Many requests",
    ),
)


FOR_EVALUATION = "generate_batch is for evaluation and experiments; vLLM and SGLang serve in production."


class Batching(ManyRequests):
    name = "batching"
    title = "Batching"
    summary = "How many requests share the model (`tokendyno batch`)."
    default = "off"
    sets = "batch.kind"
    off = "off"
    witness = "kv"
    order = 60
    aliases = {
        "static": ("padding",),
        "continuous": ("generate_batch", "ContinuousBatchingConfig", "paged", "PagedAttention", "serving"),
    }
    elsewhere = {("vllm", "sglang", "tensorrt-llm", "tgi"): FOR_EVALUATION}
    choices = (
        Choice("off", "One request after the other."),
        Choice(
            "static",
            "Requests that have arrived form a padded batch; the next batch starts when its longest is done.",
            (_NO_DRAFTS,),
        ),
        Choice(
            "continuous",
            "A request leaves when it is done and another one enters at once, over a KV cache in pages.",
            _CONTINUOUS,
        ),
    )

    def details(self, plan: Plan, subject: Subject) -> str:
        return FOR_EVALUATION if plan.generate.batch.continuous else ""


# --- static batches -------------------------------------------------------------------------------

_NEEDS_BATCHES = (
    blocked(
        lambda s: not (s.batches_statically or s.batches_continuously),
        "Without batching, one request is in work at a time.",
        "backend/worker/runners/static_batch.py: rows_of",
        (("batching", "static"),),
    ),
)


class BatchSize(ManyRequests):
    name = "batch_size"
    title = "Batch size"
    summary = "Requests in work at once: rows of a static batch, or requests in a step of continuous batching."
    default = "auto"
    sets = "batch.rows"
    order = 61
    aliases = {"": ("max_requests_per_batch",)}
    choices = (
        Choice("auto", "As many as the run allows at once, for both arms.", value=0),
        *(Choice(str(n), f"At most {n} at once.", _NEEDS_BATCHES, value=n) for n in (1, 2, 4, 8, 16, 32, 64, 128, 256)),
    )


_CODE = "backend/worker/runners/static_batch.py"
_SORTED = (
    blocked(
        lambda s: not s.batches_statically,
        "Only static batches are formed in an order; continuous batching takes requests as they arrive.",
        _CODE,
        (("batching", "static"),),
    ),
    note(
        lambda s: True,
        "Sorting needs to know how long each output will be, which a server does not: here every request generates all "
        "the tokens that it allows. A request with a long output may wait until the end.",
        _CODE,
    ),
)


class BatchOrder(ManyRequests):
    name = "batch_order"
    title = "Order of batches"
    summary = "The order in which static batches are formed from the requests that have arrived."
    default = "arrival"
    sets = "batch.order"
    order = 62
    choices = (
        Choice("arrival", "First come, first served."),
        Choice(
            "sorted", "Short outputs first, so that rows of a batch end together.", _SORTED, title="sorted by length"
        ),
    )


# --- steps of continuous batching -----------------------------------------------------------------


class PageSize(ManyRequests):
    name = "page_size"
    title = "Page size"
    summary = "Tokens in a page of the KV cache: small pages waste less room at the end of a request."
    default = "256"
    sets = "batch.page_tokens"
    in_pages = True
    order = 64
    aliases = {"": ("block_size",)}
    choices = (
        Choice("256", "The page size of transformers; what FlashAttention 2 needs.", title="256 tokens", value=256),
        *(
            Choice(str(n), f"Pages of {n} tokens.", (_only_continuous("pages"),), title=f"{n} tokens", value=n)
            for n in (16, 32, 64, 128)
        ),
    )


_BUDGET = (_only_continuous("a token budget for each step"),)


class BatchTokens(ManyRequests):
    name = "batch_tokens"
    title = "Tokens a step"
    summary = "Tokens that one step may process, those of prompts included: long prompts are cut into several steps."
    default = "512"
    sets = "batch.step_tokens"
    in_pages = True
    order = 66
    aliases = {"": ("max_batch_tokens",)}
    choices = (
        Choice("512", "Prompts of more tokens are cut into steps of 512.", value=512),
        *(
            Choice(str(n), f"Prompts of more tokens are cut into steps of {n:,}.", _BUDGET, title=f"{n:,}", value=n)
            for n in (128, 256, 1024, 2048, 4096, 8192)
        ),
    )


class Scheduler(ManyRequests):
    name = "scheduler"
    title = "Scheduler"
    summary = "Who comes first when a step of continuous batching cannot take everybody."
    default = "fifo"
    sets = "batch.scheduler"
    in_pages = True
    order = 68
    aliases = {"": ("scheduler_type",)}
    choices = (
        Choice(
            "fifo",
            "Requests that decode come first, so that their tokens are not delayed.",
            title="first in, first out",
        ),
        Choice(
            "prefill_first",
            "Prompts that were begun come first, so that first tokens come sooner.",
            (_only_continuous("this scheduler"),),
            title="prefill first",
        ),
    )


_ASYNCHRONOUS = (
    _only_continuous("asynchronous steps"),
    blocked(
        lambda s: not s.cuda,
        "Asynchronous batching needs CUDA streams, and so an NVIDIA GPU.",
        f"{_PAGED}/input_outputs.py: ContinuousBatchingAsyncIOs",
    ),
)


class AsyncBatching(ManyRequests):
    name = "async_batching"
    title = "Asynchronous batching"
    summary = "Whether the next step is prepared while the GPU works on this one."
    default = "off"
    sets = "batch.asynchronous"
    off = "off"
    in_pages = True
    order = 70
    aliases = {"on": ("use_async_batching",)}
    choices = (
        Choice("off", "A step is prepared when the one before it is done.", value=False),
        Choice(
            "on",
            "A step is prepared while the GPU works on the one before it, at the cost of a second set of inputs.",
            _ASYNCHRONOUS,
            value=True,
        ),
    )


_GRAPHS = (
    _only_continuous("these graphs"),
    blocked(lambda s: not s.cuda, "CUDA graphs need an NVIDIA GPU.", f"{_PAGED}/model_runner.py"),
    NO_EAGER_EXPERTS,
    blocked(
        lambda s: (
            s.cuda
            and not s.experts_settled
            and s.choices["experts"] in ("auto", "grouped_mm")
            and (s.compute_dtype != "bfloat16" or s.machine.capability < (8, 0))
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
    sets = "batch.graphs"
    off = "off"
    in_pages = True
    order = 72
    aliases = {"on": ("use_cuda_graph",)}
    choices = (
        Choice("off", "The kernels of a step are launched one by one.", value=False),
        Choice(
            "on",
            "Steps are padded to rounded sizes, captured once for each size before the run, and replayed.",
            _GRAPHS,
            value=True,
        ),
    )
