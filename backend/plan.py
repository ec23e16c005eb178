"""The plan: what a worker shall do, as a torch-free value.

Axes edit it, the worker executes it, and its `load_key` decides whether a loaded model can be used again.
It speaks the vocabulary of `transformers`, so that it can be read aloud as the script a user would write.
"""

import hashlib
from typing import Literal

import msgspec

SourceKind = Literal["embedded", "folder", "hub", "gguf", "random"]
CacheKind = Literal["dynamic", "unwindowed", "static"]


class ModelSource(msgspec.Struct, frozen=True):
    """Where the weights come from.

    kind     embedded and folder: `path` is a directory; gguf: `path` is the file; hub: `repo` and
             `revision`; random: `config_json` holds the architecture and nothing is fetched
    """

    kind: SourceKind
    path: str = ""
    repo: str = ""
    revision: str = ""
    config_json: str = ""


class LoadPlan(msgspec.Struct, frozen=True):
    """How the model is brought into memory.

    dtype      name of a torch dtype, or "auto": the dtype the checkpoint was saved in
    attention  value of `attn_implementation`, or None: transformers chooses
    device     "cpu" or "cuda"
    """

    source: ModelSource
    dtype: str = "auto"
    attention: str | None = None
    device: str = "cpu"


class GeneratePlan(msgspec.Struct, frozen=True):
    """How tokens are made.

    cache         dynamic: `DynamicCache(config)`, which keeps window - 1 tokens in sliding layers;
                  unwindowed: `DynamicCache()`, which keeps every token in every layer;
                  static: `StaticCache`, allocated once
    compile_mode  mode of torch.compile for the decode step inside `generate`, or None: not compiled
    """

    cache: CacheKind = "dynamic"
    compile_mode: str | None = None


class Plan(msgspec.Struct, frozen=True):
    """load -> generate, complete."""

    load: LoadPlan
    generate: GeneratePlan = GeneratePlan()

    @property
    def load_key(self) -> str:
        """Equal keys mean that an already loaded model serves this plan too."""
        return hashlib.sha256(msgspec.json.encode(self.load)).hexdigest()[:16]
