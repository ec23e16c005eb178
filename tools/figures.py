"""Writes docs/figures.md: `python -m tools.figures`.

The current figure of each claim, with its command, hardware, versions and date: from presets/claims/results, from
presets/recordings, and from tools/figures.toml where no result file holds a figure.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tokendyno.backend.claims.declared import shipped_claims
from tokendyno.backend.claims.results import read_results
from tokendyno.backend.claims.view import OnMachine, claims_document
from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.paths import ROOT
from tokendyno.backend.recordings.files import read_recording
from tokendyno.backend.recordings.shelf import SHIPPED
from tokendyno.backend.runs.run import folded

FILE = ROOT / "docs" / "figures.md"
HEAD = """# Figures

The current figure of each claim that this project makes or tests. Each stands with its command, hardware, versions and
date, so that anybody can measure it again; commands of `tools/` and tests run in a clone of the repository. What was
measured on the way stands in the repository's lab book, which is not shipped.

This page is written by `python -m tools.figures`; figures that no result file holds are in `tools/figures.toml`.
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
    """Of Markdown."""
    yield f"| {head} |"
    yield "|" + " --- |" * (head.count("|") + 1)
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '/') for cell in row)} |"
    yield ""


def claims() -> Iterator[str]:
    """A row for each claim that was tested; `tokendyno claims NAME` shows its source, figures and commands."""
    known = shipped_claims()
    document = claims_document(known, read_results(known.tests))
    counts = ", ".join(f"{count} {word}" for word, count in document.counts.items() if count)
    yield "## Claims of documents\n"
    yield (
        "What guides and documentation say of an optimization, and what was measured of it, with its 95% interval; a "
        "verdict counts all figures of a claim. `tokendyno claims NAME` names the source and the commands, "
        f"`tokendyno claims NAME --run` measures again. Of {len(document.claims)} claims: {counts}.\n"
    )
    rows, versions = [], set[str]()
    for claim in document.claims:
        where = next((one for one in claim.machines if claim.sentence.endswith(f"({one.machine})")), None)
        rows.append([f"`{claim.name}`", claim.claimed, claim.measured, claim.word, *_where(where)])
        versions |= {f"{where.machine}: {where.versions}"} if where else set()
    yield from table("claim | claimed | measured | verdict | machine | date", rows)
    yield f"{'; '.join(sorted(versions))}.\n"


def _where(where: OnMachine | None) -> tuple[str, str]:
    return (where.machine, where.date) if where else ("", "")


def recordings() -> Iterator[str]:
    """A row for each shipped recording."""
    yield "## Recordings\n"
    yield (
        "The runs behind the stories: seconds over all tokens, by arm. `tokendyno replay NAME` plays one, "
        "`python -m tools.record --list` prints their commands, and `python -m tools.record NAME` makes one again.\n"
    )
    rows, versions = [], set[str]()
    for path in sorted(SHIPPED.glob("*.dyno")):
        now = folded(read_recording(path)).snapshot()
        first = now.created
        arms = [f"{name} {arm.t_s[-1]:.3g} s for {len(arm.t_s):,}" for name, arm in now.arms.items() if arm.t_s]
        machine = (first.machine.get("gpu0") or first.machine.get("cpu", "")).partition(",")[0]
        versions.add(f"{machine}: torch {first.versions['torch']}, transformers {first.versions['transformers']}")
        date = time.strftime("%Y-%m-%d", time.gmtime(first.created))
        rows.append([path.stem, first.request.model, ", ".join(arms) or "many requests", machine, date])
    yield from table("recording | model | tokens | machine | date", rows)
    yield f"{'; '.join(sorted(versions))}.\n"


def text(file: Path = ROOT / "tools" / "figures.toml") -> str:
    """The whole page."""
    known = read_toml(file, Figures)
    lines = [HEAD, "Machines:\n", *(f"- **{name}**: {about}" for name, about in known.machines.items()), ""]
    for one in known.table:
        lines += [f"## {one.title}\n", *([one.about, ""] if one.about else [])]
        unknown = [row.machine for row in one.rows if row.machine not in known.machines]
        if unknown:
            raise SystemExit(f"{file.name}: no machine is called {', '.join(unknown)}")
        rows = [[row.what, row.figure, f"`{row.command}`", f"{row.machine}, {row.date}"] for row in one.rows]
        lines += table("what | figure | command | machine, date", rows)
    lines += [*claims(), *recordings(), "## Not run\n", *(f"- {one.text}" for one in known.not_run)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
