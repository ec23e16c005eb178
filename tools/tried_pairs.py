"""Writes `presets/tried.toml`: which pairs of choices ran together, on a CPU and on a GPU.

`python -m tools.tried_pairs RECORD...` adds the pairs of records: JSON documents of `run`, `compare` and `batch`, and
the lines that tests/gpu/test_axes.py leaves in its `every.jsonl`. A pair counts if its arm ran to the end and its
ledger had both rows as planned; a fallback is no try.
"""

import argparse
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tokendyno.backend.arms.tried import FILE, Pair, Tried, pairs_of
from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.optimizations import all_axes, defaults

IN_EFFECT = ("verified", "proved", "off", "no_effect", "not_applicable")
"""Statuses of a row that ran as planned; "proved" is the word of older records."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path, metavar="RECORD")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    known = read_toml(options.out, Tried) if options.out.exists() else Tried()
    found = {"cpu": known.pairs("cpu"), "cuda": known.pairs("cuda")}
    before = {device: len(pairs) for device, pairs in found.items()}
    for path in options.records:
        for device, choices in records(path):
            found[device].update(pairs_of(choices))
    options.out.write_text(as_toml(found))
    for device, pairs in found.items():
        print(f"{device}: {len(pairs)} pairs, {len(pairs) - before[device]} of them new")


def as_toml(found: Mapping[str, set[Pair]]) -> str:
    """The file's text; choices and axes that are gone are left out."""
    known = {f"{axis.name}={choice.name}" for axis in all_axes() for choice in axis.choices}
    lines = ["# Pairs of choices that ran together and were in effect, by device. Written by tools/tried_pairs.py."]
    for device, pairs in sorted(found.items()):
        lines += ["", f"[{device}]"]
        kept = sorted(pair for pair in pairs if known.issuperset(pair))
        for one, group in itertools.groupby(kept, key=lambda pair: pair[0]):
            lines.append(f'"{one}" = [')
            lines += [f'  "{other}",' for _, other in group]
            lines.append("]")
    return "\n".join(lines) + "\n"


def records(path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Device and choices in effect of each arm in a file."""
    text = path.read_text()
    documents = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else [json.loads(text)]
    for document in documents:
        for arm in document.get("arms", [document]):
            if document.get("status", arm.get("status")) == "done":
                device = "cuda" if "allocator_peak_bytes" in arm["extra"] else "cpu"
                yield device, in_effect(arm["requested"], arm["evidence"])


def in_effect(requested: Mapping[str, str], evidence: list[Any]) -> dict[str, str]:
    """The requested choices, but for defaults, that the ledger found as planned."""
    started = defaults()
    good = {row["axis"] for row in evidence if row["status"] in IN_EFFECT and row["requested"] == row["planned"]}
    return {axis: name for axis, name in requested.items() if axis in good and name != started.get(axis)}


if __name__ == "__main__":
    main()
