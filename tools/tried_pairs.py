"""Writes `presets/tried.toml`: which pairs of choices ran together, on a CPU and on a GPU.

`python -m tools.tried_pairs RECORD...` adds the pairs of records: JSON documents of runs, and the lines that
tests/gpu/test_axes.py leaves in its `every.jsonl`. `--run SECONDS` tries pairs that are not recorded yet on this
machine, in short runs of small models with several new pairs each.

A pair counts if its arm ran to the end and the ledger had both rows as planned; a fallback is no try.
"""

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from backend import hardware
from backend.arms.check import check
from backend.arms.parse import make_config
from backend.arms.tried import FILE, Pair, Tried, pairs_of
from backend.config import ArmRequest, Request, Workload
from backend.engine.bench import Bench
from backend.executors import open_bench
from backend.files.toml import read_toml
from backend.hardware import Machine
from backend.models import ModelFacts
from backend.optimizations import all_axes, defaults, prompt_axes
from backend.views.ledger import ledger_rows

IN_EFFECT = ("verified", "proved", "off", "no_effect", "not_applicable")
"""Statuses of a row that ran as planned; "proved" is the word of older records."""
WORK = Workload("Once upon a time, there was a little fox named Pip.", max_new_tokens=12, ignore_eos=True)
LONG = {"chunks-512": 600, "chunks-2048": 2_200}
"""Tokens of a prompt that does not fit into one such chunk."""
POSITIONS = 4_096
RUN_S = 120
COMPILES = {"compile", "flex_attention"}
"""Axes and choices that take their time."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="*", type=Path, metavar="RECORD")
    parser.add_argument("--run", type=float, default=0.0, metavar="SECONDS", help="try further pairs here for so long")
    parser.add_argument("--compile", action="store_true", help="with --run: pairs that compile too")
    parser.add_argument("--only", default="", metavar="AXIS", help="with --run: pairs with a choice of this axis")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    known = read_toml(options.out, Tried) if options.out.exists() else Tried()
    found = {"cpu": known.pairs("cpu"), "cuda": known.pairs("cuda")}
    before = {device: len(pairs) for device, pairs in found.items()}
    for path in options.records:
        for device, choices in records(path):
            found[device].update(pairs_of(choices))
        options.out.write_text(as_toml(found))
    if options.run:
        for device, choices in tries(found, options.run, options.compile, options.only):
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


# --- records --------------------------------------------------------------------------------------


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


def _planned(requested: Mapping[str, str], planned: Mapping[str, str]) -> dict[str, str]:
    started = defaults()
    return {axis: name for axis, name in requested.items() if name != started[axis] and planned[axis] == name}


# --- runs -----------------------------------------------------------------------------------------


def tries(
    found: Mapping[str, set[Pair]], limit_s: float, compiled: bool, only: str = ""
) -> Iterator[tuple[str, dict[str, str]]]:
    """Runs arms until the time is up or every pair that can run, and has a choice of the axis `only`, is recorded."""
    from tests.support.scripts import small_models

    machine = hardware.detect()
    chosen = [(a.name, c.name) for a in prompt_axes() for c in a.choices if c.name != a.default]
    chosen = [one for one in chosen if compiled or not COMPILES & {one[0], one[1]}]
    failed: set[Pair] = set()
    with tempfile.TemporaryDirectory() as folder:
        models = small_models(Path(folder), POSITIONS)[::-1]
        bench = open_bench(executor="in-process")
        bench.start()
        until_s = time.monotonic() + limit_s
        try:
            for one, other in itertools.combinations(chosen, 2):
                pair = dict([one, other])
                if only and only not in pair:
                    continue
                model = next((m for m in models if len(pair) == 2 and _runs(pair, m, machine)), None)
                while model is not None and (missing := set(pairs_of(pair)) - found[machine.device] - failed):
                    if time.monotonic() > until_s:
                        return
                    choices = _grown(pair, chosen, found[machine.device] | failed, model, machine)
                    effective = attempt(bench, model, choices)
                    yield machine.device, effective
                    if missing - found[machine.device] and choices != pair:  # something else stood in the way
                        effective = attempt(bench, model, pair)
                        yield machine.device, effective
                    failed |= missing - found[machine.device]
        finally:
            bench.close()


def _grown(
    pair: Mapping[str, str], chosen: list[tuple[str, str]], known: set[Pair], model: ModelFacts, machine: Machine
) -> dict[str, str]:
    """A pair and whatever runs beside it and makes further new pairs: an arm that tries many at once."""
    choices = dict(pair)
    for axis, name in chosen:
        more = {**choices, axis: name}
        if axis not in choices and len(set(pairs_of(more)) - known) > len(set(pairs_of(choices)) - known) and _runs(
            more, model, machine
        ):  # fmt: skip
            choices = more
    return choices


def _work(choices: Mapping[str, str]) -> Workload:
    return replace(WORK, prompt_tokens=LONG.get(choices.get("prefill", ""), 0))


def _runs(choices: Mapping[str, str], model: ModelFacts, machine: Machine) -> bool:
    """Whether the pair runs as asked, with nothing added."""
    checked = check(make_config(model.model, choices), model, machine, _work(choices))
    return not checked.blocked and _planned(checked.requested, checked.planned).keys() >= choices.keys()


def attempt(bench: Bench, model: ModelFacts, choices: Mapping[str, str]) -> dict[str, str]:
    """The choices that were in effect in one run; none if it failed."""
    run_id = bench.submit(Request(model.model, [ArmRequest("A", dict(choices))], _work(choices)))
    run = bench.wait(run_id, RUN_S)  # a run in this process cannot be ended: TimeoutError ends the tool
    arm, effective = ",".join(f"{axis}={choice}" for axis, choice in choices.items()), dict[str, str]()
    if run.status == "done":
        rows = [msgspec.to_builtins(row) for row in ledger_rows(run.snapshot().ledger("A"))]
        effective = in_effect(choices, rows)
        missing = ", ".join(sorted(choices.keys() - effective.keys()))
        print(f"{arm}: {f'NOT IN EFFECT: {missing}' if missing else 'in effect'}", flush=True)
    else:
        print(f"{arm}: {run.status}: {run.message[:200]}", flush=True)
    return effective


if __name__ == "__main__":
    main()
