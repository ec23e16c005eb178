"""The code samples of the documents, as this version of transformers takes them: a section of docs/documents.md."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from tokendyno.backend.claims.declared import DOCUMENTS
from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.units import plural
from tools.figures import table

FILE = PRESETS / "samples.toml"


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One sample.

    place    where it stands in the document
    calls    what is called, with the printed arguments; `shell`: a command
    graphs   compiled by them; None: they compile nothing and do not say so
    error    the exception, and `says` some of its words; `warns`: words of a warning or of the log
    then     an expression that is true afterwards
    instead  lines that work, without the error or warning, and compile where the sample compiles 0 graphs
    needs    what is not here; with "hub" the error is that of a machine without the Hub
    ranks    processes of torchrun
    does     more about it, in words
    arm      that does the same here
    """

    name: str
    document: str
    place: str
    calls: str
    shell: bool = False
    graphs: int | None = None
    error: str = ""
    says: str = ""
    warns: str = ""
    then: str = ""
    instead: str = ""
    needs: Literal["", "hub", "cuda"] = ""
    ranks: int = 1
    does: str = ""
    arm: str = ""


class _Samples(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    sample: list[Sample]


def samples() -> list[Sample]:
    """Every sample, in the order of the documents."""
    return read_toml(FILE, _Samples).sample


def calls() -> Iterator[str]:
    """The section, as Markdown."""
    from transformers import __version__

    yield "## Their calls in this version\n"
    yield (
        f"What transformers {__version__} does with the calls of the documents' samples. Each is run by a test with a "
        "tiny model under the printed name, and so are the lines that replace it; what needs a GPU is run by `pytest "
        '-m gpu`. "Without the Hub": what a machine says that cannot reach it.\n'
    )
    for document, title in DOCUMENTS.items():
        yield f"### {title}\n"
        rows = [
            (sample.place, _code(sample.calls), _outcome(sample), _code(sample.instead), _code(sample.arm))
            for sample in samples()
            if sample.document == document
        ]
        yield from table("place | calls | in this version | write instead | arm", rows)


def _outcome(sample: Sample) -> str:
    sentences = []
    if sample.needs == "cuda":
        sentences.append("Needs a GPU.")
    if sample.error:
        sentences.append(f"{'Without the Hub: ' * (sample.needs == 'hub')}{sample.error}: {sample.says}.")
    elif sample.needs == "hub":
        sentences.append("Needs the Hub.")
    if sample.warns:
        sentences.append(f"Says: {sample.warns.rstrip('.')}.")
    if sample.graphs is not None:
        sentences.append(f"Compiles {plural(sample.graphs, 'graph')}.")
    return " ".join([*(sentences or ["Runs."]), *([sample.does] if sample.does else [])])


def _code(lines: str) -> str:
    """In a cell, line by line."""
    return "<br>".join(f"`{line}`" for line in lines.strip().splitlines())
