"""What rules look at: the model, the machine, the choice of every axis, and what these come to together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tokendyno.backend.hardware import Machine, kernel_packages
from tokendyno.backend.hardware.number_formats import FormatTime, nearest
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import routed
from tokendyno.backend.plan import CACHES, GRAPH_MODES, CacheKind
from tokendyno.backend.predict.quantized import library_of
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.shape import attention_of

CLEARLY_SLOWER = 1.3
"""From this ratio of times on, dtype=auto gives up the checkpoint's bfloat16 on a CPU. Our choice."""

COMPILED_CHECKPOINTS = frozenset({"compressed-tensors", "fp8", "gemma", "gguf", "mxfp8", "nvfp4", "torchao"})
"""Quantized checkpoints that `generate` compiles all the same; a test compares this with transformers' classes."""

UNCOMPILED_LIBRARIES = ("bitsandbytes", "quanto")
"""Quantization libraries whose models `generate` does not compile (`HfQuantizer.is_compileable`)."""

_MAPPED = {
    "gpt_oss": {"MegaBlocksMoeMLP": "megablocks", "RMSNorm": "liger-kernels", "rotary_pos_emb": "rotary"},
    "gpt2": {"NewGELU": "activation"},
    "bert": {"GeLU": "activation"},
    "gemma3_text": {"GeluTanh": "activation", "rotary_pos_emb": "rotary"},
}
"""Layers of an architecture -> repositories of kernels-community to which transformers maps them on CUDA."""

_USUALLY_MAPPED = {"RMSNorm": "liger-kernels", "SiLU": "activation", "rotary_pos_emb": "rotary"}


@dataclass(frozen=True, slots=True)
class Subject:
    """An arm as rules see it; each question that several axes ask is answered here once.

    `choices` names every axis, so that no rule needs to know another axis's default: build one with
    `tokendyno.backend.optimizations.subject_of`. `values`: by axis, those of its choice, by key.
    """

    facts: ModelFacts
    machine: Machine
    choices: Mapping[str, str]
    batch_size: int
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def decoder(self) -> bool:
        return self.facts.kind == "decoder"

    @property
    def cuda(self) -> bool:
        return self.machine.device == "cuda"

    def value(self, axis: str, key: str) -> str:
        """That value of the axis's choice; "" where it is not set."""
        return self.values.get(axis, {}).get(key, "")

    # --- dtype, attention, cache and loop ---

    @property
    def slow_bfloat16(self) -> FormatTime | None:
        """The measurement by which this CPU should load bfloat16 weights in float32; None where it should not: they are
        not slower, or float32 weights would take more than a quarter of memory."""
        facts, quantized = self.facts, self.facts.quantization or self.choices["quantization"] != "none"
        if self.cuda or not self.decoder or facts.dtype != "bfloat16" or quantized:
            return None
        many = self.batches_statically or self.batches_continuously  # the same in both, whatever is beside a request
        rows = 1 if many else self.batch_size
        measured = nearest(self.machine.bfloat16, 2 * facts.parameters, rows)
        if measured is None or measured.ratio < CLEARLY_SLOWER or 4 * facts.parameters > self.machine.memory_bytes / 4:
            return None
        return measured

    def dtype_of(self, name: str) -> str:
        """The number format that a choice of `dtype` comes to."""
        if name != "auto":
            return name
        return "float32" if self.slow_bfloat16 else self.facts.dtype

    @property
    def compute_dtype(self) -> str:
        """The dtype of the activations."""
        return self.dtype_of(self.choices["dtype"])

    @property
    def half_precision(self) -> bool:
        """Whether activations are in a 2-byte format."""
        return self.compute_dtype in ("float16", "bfloat16")

    @property
    def attention(self) -> str:
        """The attention that runs: as asked for, else the default of transformers."""
        choice = self.choices["attention"]
        return attention_of(self.facts, Setup(attention=None if choice == "auto" else choice))

    @property
    def cache(self) -> CacheKind:
        return CACHES[self.choices["cache"]]

    @property
    def own_loop(self) -> bool:
        return self.choices["loop"] == "own"

    @property
    def drafts(self) -> bool:
        return self.choices["speculation"] != "off"

    @property
    def batches_statically(self) -> bool:
        return self.choices["batching"] == "static"

    @property
    def batches_continuously(self) -> bool:
        return self.choices["batching"] == "continuous"

    # --- weights and experts ---

    @property
    def quantization_library(self) -> str:
        """The library that quantizes the weights while they are loaded; "" where none does."""
        return library_of(self.choices["quantization"])

    @property
    def has_mxfp4(self) -> bool:
        """Whether there are MXFP4 weights to run: those of a checkpoint, or random ones created in MXFP4."""
        return self.facts.quantization == "mxfp4" or (self.facts.random and self.facts.architecture == "gpt_oss")

    @property
    def asks_mxfp4(self) -> bool:
        """Whether experts are to stay in MXFP4: asked for, or left to the checkpoint."""
        choice = self.choices["quantization"]
        return self.has_mxfp4 if choice == "mxfp4" else choice == "none" and self.facts.quantization == "mxfp4"

    @property
    def runs_mxfp4(self) -> bool:
        """Whether this arm's experts stay in MXFP4: kernels for it run here, tokendyno's own or the Hub's."""
        hub = self.asks_mxfp4 and not any(when(self) for when, _, _ in routed.MXFP4_OBSTACLES)
        return hub or self.runs_own_mxfp4

    @property
    def runs_own_mxfp4(self) -> bool:
        """Whether tokendyno's own kernels compute experts in MXFP4: chosen, or in place of the Hub's."""
        if not self.asks_mxfp4 or any(obstacle(self) for obstacle, _ in routed.OBSTACLES):
            return False
        over_ranks = self.choices["parallel"].startswith(("tensor-", "expert-"))  # each has a part of every mixture
        stand_in = over_ranks or routed.mxfp4_unreachable(self) or routed.mxfp4_misread(self)
        return self.choices["experts"] == "triton" or (self.choices["experts"] == "auto" and stand_in)

    @property
    def hub_kernel_layers(self) -> dict[str, str]:
        """Layers of this model -> repositories of the Hub with kernels for them on this device."""
        layers = _MAPPED.get(self.facts.architecture, _USUALLY_MAPPED).items()
        here = {layer: name for layer, name in layers if self.cuda or layer == "MegaBlocksMoeMLP"}
        return {layer: f"{kernel_packages.PUBLISHER}/{name}" for layer, name in here.items()}

    @property
    def takes_hub_kernels(self) -> bool:
        """Whether Hub kernels were asked for, and transformers has some for this model."""
        return self.choices["kernels"] == "hub" and bool(self.hub_kernel_layers)

    @property
    def experts_settled(self) -> bool:
        """Whether nothing is left to choose: the model has no experts, or a kernel of their own computes them."""
        return not self.facts.experts or self.runs_mxfp4 or self.takes_hub_kernels

    # --- compilation ---

    @property
    def asks_to_compile(self) -> bool:
        """Whether a step is to be compiled, whatever comes of it; torch.compile(model) compiles none."""
        return self.choices["compile"] not in ("off", "module")

    @property
    def skips_compilation(self) -> bool:
        """Whether `generate` would silently leave this model uncompiled, because of how its weights are quantized."""
        if not self.decoder or self.own_loop:
            return False
        chosen, checkpoint = self.choices["quantization"], self.facts.quantization
        if "mxfp4" in (chosen, checkpoint):
            return self.runs_mxfp4  # dequantized, it can be compiled
        if chosen == "none":
            return checkpoint is not None and checkpoint not in COMPILED_CHECKPOINTS
        return self.quantization_library in UNCOMPILED_LIBRARIES

    @property
    def compiles(self) -> bool:
        """Whether the arm asks for compilation and gets it."""
        return self.asks_to_compile and not self.skips_compilation

    @property
    def replays_graphs(self) -> bool:
        """Whether compiled code is replayed as CUDA graphs."""
        return self.compiles and self.choices["compile"] in GRAPH_MODES and self.cuda
