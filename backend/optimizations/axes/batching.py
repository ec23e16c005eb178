"""How many requests share the model: one after the other, in static batches, or by continuous batching."""

from tokendyno.backend.optimizations.base import Choice, ManyRequests, Subject, blocked, note
from tokendyno.backend.optimizations.conditions import PAGED, attention_in_use, drafts, kv_cache, uses_own_loop
from tokendyno.backend.plan import Plan

_PAGED_ATTENTION = (
    "eager",
    "sdpa",
    "flash_attention_2",
    "flash_attention_3",
    "kernels-community/flash-attn2",
    "kernels-community/vllm-flash-attn3",
)

_STATIC = (
    blocked(
        drafts,
        "Prompt lookup drafts for a single sequence; a batch has several.",
        "transformers 5.22: generation/candidate_generator.py",
        (("speculation", "off"),),
    ),
)

_CONTINUOUS = (
    blocked(
        lambda s: s.decoder and not s.facts.fits_pages,
        "Continuous batching keeps pages of keys and values, of one size in all layers with full and with sliding "
        "attention. This model keeps something else (states, latents, chunks), shares keys and values between layers, "
        "or has attention that reads no pages.",
        f"{PAGED}/cache.py: ATTN_TYPE_TO_ALLOCATOR, PagedAttentionCache",
        (("batching", "static"),),
    ),
    blocked(
        lambda s: s.decoder and attention_in_use(s) not in _PAGED_ATTENTION,
        "Continuous batching accepts eager, sdpa, FlashAttention 2 and FlashAttention 3 only.",
        f"{PAGED}/continuous_api.py: switch_to_cb_friendly_attn",
        (("attention", "auto"),),
    ),
    blocked(
        lambda s: s.decoder and kv_cache(s).name != "dynamic",
        "Continuous batching has a KV cache of its own, in pages; no other cache can be chosen with it.",
        f"{PAGED}/cache.py: PagedAttentionCache",
        (("cache", "dynamic"),),
    ),
    blocked(
        drafts,
        "Continuous batching generates one token a step for each request; it verifies no drafts.",
        f"{PAGED}/scheduler.py",
        (("speculation", "off"),),
    ),
    blocked(
        lambda s: s.decoder and uses_own_loop(s),
        "Continuous batching has a loop of its own.",
        f"{PAGED}/continuous_api.py",
        (("loop", "generate"),),
    ),
    blocked(
        lambda s: s.choices["compile"] != "off",
        "Compiled steps of continuous batching are not offered: its attention is excluded from compilation, so that a "
        "step breaks into two graphs a layer.",
        "transformers 5.22: integrations/eager_paged.py, PagedAttentionCache.update",
        (("compile", "off"),),
    ),
    blocked(
        lambda s: s.choices["shapes"] != "exact",
        "Steps of continuous batching have no padded shapes: prompts follow each other in one row.",
        f"{PAGED}/input_outputs.py",
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
        Choice("off", "off", "One request after the other."),
        Choice(
            "static",
            "static",
            "Requests that have arrived form a padded batch; the next batch starts when its longest is done.",
            _STATIC,
        ),
        Choice(
            "continuous",
            "continuous",
            "A request leaves when it is done and another one enters at once, over a KV cache in pages.",
            _CONTINUOUS,
        ),
    )

    def details(self, plan: Plan, subject: Subject) -> str:
        return FOR_EVALUATION if plan.generate.batch.continuous else ""


AXIS = Batching()
