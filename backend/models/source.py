"""Where a model's weights come from."""

from typing import Literal

import msgspec

RANDOM = "random:"
FORWARD = "forward:"
"""Before the reference of a decoder: its forward pass is timed, and nothing is generated."""

SourceKind = Literal["embedded", "folder", "hub", "gguf", "random"]


class ModelSource(msgspec.Struct, frozen=True):
    """Where the weights come from, by `kind`.

    embedded, folder  the folder `path`
    hub               `repo` at `revision`, "" for its main branch; `commit` is where that was when it was checked, and
                      what is downloaded; "" until it is known
    random            random weights for the architecture in `config_json`; nothing is downloaded

    forward: of a model that generates, the forward pass alone is timed, `model(**inputs)`, as an encoder's is.
    """

    kind: SourceKind
    path: str = ""
    repo: str = ""
    revision: str = ""
    commit: str = ""
    config_json: str = ""
    forward: bool = False

    @property
    def at(self) -> str:
        """The commit, else the revision: what the files are looked up by, here and on the Hub."""
        return self.commit or self.revision


def is_random(ref: str) -> bool:
    """Whether a reference asks for random weights, however its prefix is written."""
    return without(FORWARD, ref.strip()).lower().startswith(RANDOM)


def without(prefix: str, ref: str) -> str:
    """A reference without this prefix, however it is written; the same where it has none."""
    return ref[len(prefix) :].strip() if ref.lower().startswith(prefix) else ref
