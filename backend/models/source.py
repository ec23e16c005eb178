"""Where a model's weights come from."""

from typing import Literal

import msgspec

SourceKind = Literal["embedded", "folder", "hub", "gguf", "random"]


class ModelSource(msgspec.Struct, frozen=True):
    """Where the weights come from, by `kind`.

    embedded, folder  the folder `path`
    gguf              the file `path`
    hub               `repo` at `revision`
    random            random weights for the architecture in `config_json`; nothing is downloaded
    """

    kind: SourceKind
    path: str = ""
    repo: str = ""
    revision: str = ""
    config_json: str = ""
