"""What is known of a model before it is loaded, as one frozen value."""

from dataclasses import dataclass
from typing import Literal

from backend.plan import ModelSource

LayerKind = Literal["sliding", "full"]
ModelKind = Literal["decoder", "encoder"]
MatrixKind = Literal["linear", "conv1d", "expert", "embedding", "head"]

RANDOM_NOTE = "random weights: the text is noise; latency, memory and KV are real"


@dataclass(frozen=True, slots=True)
class Matrix:
    """`count` equal matrices of `rows` outputs by `columns` inputs.

    kind  linear: `nn.Linear` in the layers; conv1d: GPT-2's transposed ones; expert: one expert's, which lie together
          in a three-dimensional parameter and are no modules; embedding: a table of which a token reads one row;
          head: the output head (where it is tied, the first embedding is read as the head too)
    side  which one ranks share where they share it: rows, or columns (it follows a matrix whose rows are shared)
    bias  each has a bias, a number for each row
    """

    kind: MatrixKind
    count: int
    rows: int
    columns: int
    side: Literal["rows", "columns"] = "rows"
    bias: bool = False

    @property
    def numbers(self) -> int:
        """Numbers in all of them."""
        return self.count * self.rows * self.columns


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model, from its config.json, its GGUF header or the catalogue; nothing here was measured.

    Counts are plain numbers, lengths and windows are tokens, sizes are bytes.

    model              the reference exactly as it was typed
    label              what a page shows for it
    kind               decoder: makes tokens and has a KV cache; encoder: neither (BERT)
    architecture       `model_type` of the text model
    layer_kinds        one per layer: does it see a window of the past or all of it
    window             tokens a sliding layer sees, the newest included; None: no layer slides
    heads, kv_heads    query heads and key/value heads of one layer, of `head_dim` numbers each
    intermediate       width of the feed-forward block (of one expert, where there are experts)
    max_positions      longest sequence the model was made for
    parameters         learned numbers, tied ones once; an encoder without a task head, as in AutoModel
    parameters_exact   False: derived for an architecture whose formula is not known here; see `note`
    buffer_bytes       tensors beside the parameters: rotary frequencies, BERT's position ids
    dtype              torch dtype the checkpoint names, e.g. "bfloat16"; "auto" in a plan means this one
    tied               input embedding and output head are one matrix
    experts            experts of a layer, 0 without a mixture; `experts_per_token` of them work on a token
    sinks              learned attention sinks (gpt-oss): sdpa cannot be used
    quantization       method the checkpoint is packed with (e.g. "mxfp4"), None for plain weights
    random             weights are drawn at random; `note` says so
    weight_file_bytes  size of the weight files, where they were seen
    packed_bytes       size of the tensors in them, where their headers were read
    chats              False: the tokenizer has no chat template, as far as its files say; True: it may have one
    matrices           the weight matrices by kind and size, embeddings and head included
    """

    model: str
    label: str
    kind: ModelKind
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
    parameters: int
    dtype: str
    experts: int
    experts_per_token: int
    sinks: bool
    random: bool
    source: ModelSource
    weight_file_bytes: int | None = None
    note: str = ""
    tied: bool = False
    quantization: str | None = None
    buffer_bytes: int = 0
    packed_bytes: int | None = None
    parameters_exact: bool = True
    chats: bool = True
    matrices: tuple[Matrix, ...] = ()

    @property
    def sliding_layers(self) -> int:
        """How many layers see a window only."""
        return self.layer_kinds.count("sliding")

    @property
    def full_layers(self) -> int:
        """How many layers see everything."""
        return self.layer_kinds.count("full")
