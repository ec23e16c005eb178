"""The facts of a model before it is loaded, as one frozen value."""

from dataclasses import dataclass, field
from typing import Literal

from tokendyno.backend.models.families import NO_SDPA
from tokendyno.backend.models.router import Router
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.models.stored import StoredFormat

LayerKind = Literal["sliding", "full", "fixed"]
ModelKind = Literal["decoder", "encoder"]
MatrixKind = Literal["linear", "conv1d", "expert", "embedding", "head"]
Use = Literal["always", "routed", "never"]

RANDOM_NOTE = "Random weights: the text is noise, words of a list; latency, memory and KV are real."
RANDOM_ENCODER_NOTE = "Random weights: latency and memory are real."


@dataclass(frozen=True, slots=True)
class Matrix:
    """`count` matrices of the same shape: `rows` outputs by `columns` inputs.

    kind  linear: `nn.Linear` in the layers; conv1d: GPT-2's transposed ones; expert: one expert's, a
          slice of a three-dimensional parameter, not a module; embedding: a table of which each token reads one row;
          head: the output head (if tied, the first embedding is also the head)
    side  the dimension that tensor parallelism splits: rows, or columns (for a matrix after one split by rows)
    use   routed: only the experts that a token chooses; never: by no step over text (a vision tower)
    dense_in  libraries that leave them as they are, though they quantize others of this kind
    """

    kind: MatrixKind
    count: int
    rows: int
    columns: int
    side: Literal["rows", "columns"] = "rows"
    bias: bool = False
    use: Use = "always"
    dense_in: tuple[str, ...] = ()

    @property
    def elements(self) -> int:
        return self.count * self.rows * self.columns


@dataclass(frozen=True, slots=True)
class CacheLayers:
    """`count` layers of the KV cache that are alike, per sequence.

    kind            sliding: keeps a window (of a chunk, in chunked attention); full: all tokens; fixed: a state that
                    does not grow (linear attention, Mamba), or nothing (a layer without attention)
    elements        of one token's keys and values together, in the compute dtype
    window          in tokens, the newest included
    state_elements  of the fixed state, in the compute dtype; a layer of any kind may have one
    state_bytes     of the fixed state, in a dtype of its own
    even            keys and values are as large as each other and there is nothing else that grows
    latent          a compressed vector of each token is kept in place of its keys and values (MLA)
    index_elements  of `elements`, those by which sparse attention chooses the tokens to attend to
    """

    count: int
    kind: LayerKind
    elements: int
    window: int | None = None
    state_elements: int = 0
    state_bytes: int = 0
    even: bool = True
    latent: bool = False
    index_elements: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextModel:
    """The shape of one text model.

    layer_kinds        one per layer of the cache: a sliding window, everything, or a fixed state
    heads, kv_heads    query heads and key/value heads of one layer, each of `head_dim` elements
    experts            experts per layer, 0 if dense; each token is routed to `experts_per_token` of them
    dtype              torch dtype of the checkpoint, e.g. "bfloat16"; what "auto" in a plan means
    quantization       how the checkpoint is quantized (e.g. "mxfp4"); None if it is not
    """

    architecture: str
    layers: int
    layer_kinds: tuple[LayerKind, ...]
    window: int | None
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    max_positions: int
    experts: int
    experts_per_token: int
    dtype: str
    tied: bool = False
    quantization: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts(TextModel):
    """One model, from its config.json, its GGUF header or the catalogue. Nothing here is measured. Sizes are in bytes.

    kind               decoder: generates and has a KV cache; encoder: neither (BERT, and a forward pass alone)
    float32_in         parameters that stay in float32 where the rest is loaded in a half precision, by its name
    buffer_bytes       tensors that are not parameters: rotary frequencies, BERT's position ids
    buffer_elements    elements of those of such tensors that have the dtype of the parameters
    sinks              learned attention sinks (gpt-oss), which sdpa does not support
    packed_bytes       size of the tensors in the weight files, if their headers were read
    has_chat_template  False: the tokenizer files have no chat template; True: they have one, or it is unknown
    template_variables  by which its chat template knows how long to reason; None: unknown
    counted_cache      the cache's layers, where they were counted; empty: all are alike but for the window
    fits_static        whether `generate` can keep its tokens in a static cache
    fits_slots         whether the custom decode loop can take its steps, over slots of a static cache
    step_waits         whether its decode step waits for the device, in transformers' own code
    shared_inputs      groups of linear layers with an input in common that projections=fused knows; None: not counted
    counted_workspace  what a pass over a prompt takes, by number format, where counted: see `Counted.workspace`
    """

    model: str
    label: str
    kind: ModelKind
    parameters: int
    sinks: bool
    random: bool
    source: ModelSource
    note: str = ""
    buffer_bytes: int = 0
    buffer_elements: int = 0
    packed_bytes: int | None = None
    has_chat_template: bool = True
    template_variables: tuple[str, ...] | None = None
    template_parts: bool = False
    matrices: tuple[Matrix, ...] = ()
    float32_in: tuple[tuple[str, int], ...] = ()
    counted_cache: tuple[CacheLayers, ...] = ()
    counted_workspace: tuple[tuple[str, tuple[float, ...]], ...] = ()
    stored: StoredFormat | None = None
    fits_static: bool = True
    fits_slots: bool = True
    step_waits: bool = False
    fits_pages: bool = True
    shared_inputs: int | None = None
    router: Router = field(default_factory=Router)

    @property
    def no_tokens(self) -> str:
        """Why a model that is no decoder generates nothing, as the beginning of a sentence."""
        if self.source.forward:
            return f"{self.label.removesuffix(', forward pass')} is timed by its forward pass alone"
        return f"{self.label} is an encoder"

    @property
    def lacks_sdpa(self) -> bool:
        """Whether transformers refuses sdpa for it, and takes eager attention by itself."""
        return self.sinks or self.architecture in NO_SDPA

    @property
    def experts_stay(self) -> str:
        """A sentence where the weights are mostly experts, which transformers keeps in one parameter for all of a
        layer, so that no quantization of linear layers packs them; else ""."""
        share = sum(matrix.elements for matrix in self.matrices if matrix.kind == "expert") / max(1, self.parameters)
        if share < 0.5 or self.quantization is not None:
            return ""
        return f"Experts are {share:.0%} of its weights, and no quantization here packs them."

    @property
    def cache_layers(self) -> tuple[CacheLayers, ...]:
        """The layers of the KV cache; none in an encoder."""
        if self.kind == "encoder" or self.counted_cache:
            return self.counted_cache
        elements = 2 * self.kv_heads * self.head_dim
        both = (
            CacheLayers(self.sliding_layers, "sliding", elements, self.window),
            CacheLayers(self.full_layers, "full", elements),
        )
        return tuple(layers for layers in both if layers.count)

    @property
    def sliding_layers(self) -> int:
        return self.layer_kinds.count("sliding")

    @property
    def full_layers(self) -> int:
        return self.layer_kinds.count("full")
