"""Writes docs/figures.md: `python -m tools.figures`.

The current figures that no result file holds, from tools/figures.toml, with command, hardware, versions and date.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.paths import ROOT

FILE = ROOT / "docs" / "figures.md"
HEAD = """# Figures

Each with its command, hardware, versions and date; commands of `tools/` and tests run in a clone of the repository.
Written by `python -m tools.figures` from `tools/figures.toml`. What was measured of documents' claims is in
[documents.md](documents.md).
"""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure. `machine`: a key of `Figures.machines`."""

    what: str
    figure: str
    command: str
    machine: str
    date: str


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Figures about one subject."""

    title: str
    about: str
    rows: list[Row]


class NotRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence about what nobody has measured or tried."""

    text: str


class Figures(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file tools/figures.toml."""

    machines: dict[str, str]
    table: list[Table]
    not_run: list[NotRun]


def table(head: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown."""
    yield f"| {head} |"
    yield "|" + " --- |" * (head.count("|") + 1)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"
    yield ""


def text(file: Path = ROOT / "tools" / "figures.toml") -> str:
    """The whole page."""
    figures = read_toml(file, Figures)
    lines = [HEAD, "Machines:\n", *(f"- **{name}**: {about}" for name, about in figures.machines.items()), ""]
    for section in figures.table:
        lines += [f"## {section.title}\n", *([section.about, ""] if section.about else [])]
        unknown = [row.machine for row in section.rows if row.machine not in figures.machines]
        if unknown:
            raise SystemExit(f"{file.name}: no machine is called {', '.join(unknown)}")
        rows = [[row.what, row.figure, f"`{row.command}`", f"{row.machine}, {row.date}"] for row in section.rows]
        lines += table("what | figure | command | machine, date", rows)
    lines += ["## Not run\n", *(f"- {sentence.text}" for sentence in figures.not_run)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
