"""Do the tests notice small mistakes? `python tools/mutants.py --seed 10 --count 300 --out mutants.json`.

Changes one condition or constant of the product at a time, in a copy of the tree, and runs the tests that execute that
line and start no process, those that mirror its module first. Prints each mutant as killed, survived, or uncovered (no
such test executes it), and rewrites `--out` after each; a later call with the same `--out` goes on from there.
`--prefer FILE` takes the mutants of an earlier run's file first, which makes two trees comparable. The tests that
execute a line are recorded once, beside `--out` or in `--coverage`. `--part 2/8` tries the second of eight parts of the
same draw, so that several processes share it, each with an `--out` of its own.
"""

import argparse
import compileall
import functools
import itertools
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if Path(path).resolve() not in (HERE, HERE.parent)]
    sys.path.insert(0, str(HERE))  # `mutation` alone: the product is imported from the copy

if __package__:
    from tools.mutation import runner, sites, warm
    from tools.mutation.judge import Judge
else:
    from mutation import runner, sites, warm  # type: ignore[import-not-found,no-redef]
    from mutation.judge import Judge  # type: ignore[import-not-found,no-redef]

PATHS = ["backend/optimizations", "backend/predict", "backend/runs", "backend/arms"]
IGNORED = [
    f"tests/backend/{name}"
    for name in ("cli", "engine", "executors", "worker", "hardware/test_bandwidth.py", "hardware/test_machine.py")
]
"""Tests of processes and of this machine."""
COPIED = (
    "backend", "ui", "presets", "tests", "tools", "docs", "app.py", "pyproject.toml", "README.md", "ARCHITECTURE.md",
    "CHANGELOG.md", "MEASUREMENTS.md",
)  # fmt: skip
FIRST = ["pytest", "msgspec", "numpy", "torch", "transformers"]
DECLARED = "backend/optimizations/axes"
READERS = ("tests/backend/optimizations/test_declarations.py", "tests/backend/arms/test_remedies.py")
"""What axes declare is read by tests that execute no line of theirs."""
SOONEST = (*READERS, "tests/backend/optimizations/test_recorded_rules.py")
"""Tests that come first for what an axis declares: they ask all of it."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=10)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=HERE.parent, help="the tree to mutate (never changed itself)")
    parser.add_argument("--paths", nargs="*", default=PATHS, help="files and folders to mutate")
    parser.add_argument("--tests", nargs="*", default=["tests/backend"])
    parser.add_argument("--ignore", nargs="*", default=IGNORED, help="tests to leave out")
    parser.add_argument("--prefer", type=Path, help="result of an earlier run: its mutants come first")
    parser.add_argument("--common-with", type=Path, help="another tree: mutants that can be made there too come first")
    parser.add_argument("--most-s", type=float, default=20.0, help="tests a mutant, in seconds as they were recorded")
    parser.add_argument("--part", default="1/1", help="number of this part of the draw, and of how many")
    parser.add_argument("--coverage", type=Path, help="which tests execute which lines; recorded there if it is new")
    parser.add_argument("--limit-s", type=float, default=1e9, help="start no further mutant after so many seconds")
    options = parser.parse_args(arguments)
    options.out = options.out.resolve()  # children stand in the copy
    deadline_s = time.monotonic() + options.limit_s
    os.environ.update(OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", HF_HUB_OFFLINE="1")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        copy(options.root.resolve(), tree)
        os.environ["PYTHONPATH"] = str(tree)
        results = perform(tree, options, deadline_s)
    counted = Counter(result["status"] for result in results)
    print(f"{len(results)} of {options.count}: " + ", ".join(f"{count} {name}" for name, count in counted.items()))
    if options.prefer:
        report_changes(results, json.loads(options.prefer.read_text()))
    return 0 if len(results) >= len(range(*part_of(options))) else 3


def part_of(options: argparse.Namespace) -> tuple[int, int, int]:
    """Places in the draw that this part takes: begin, end and stride of a range."""
    number, parts = map(int, options.part.split("/"))
    return number - 1, options.count, parts


def report_changes(results: list[dict[str, Any]], earlier: list[dict[str, Any]]) -> None:
    """Which mutants of both runs were killed in the earlier one and are not any more."""
    before = {result["key"]: result["status"] for result in earlier}
    shared = [result for result in results if result["key"] in before]
    lost = [result for result in shared if before[result["key"]] == "killed" != result["status"]]
    gained = [result for result in shared if before[result["key"]] != "killed" == result["status"]]
    alive_then = sum(status != "killed" for status in before.values())
    alive_now = sum(result["status"] != "killed" for result in results)
    print(f"not killed: {alive_then} of {len(before)} then, {alive_now} of {len(results)} now")
    print(f"{len(shared)} mutants in both runs: {len(lost)} are not killed any more, {len(gained)} are killed only now")
    for result in lost:
        print(f"  {result['path']}:{result['line']} {result['key']}")


def copy(root: Path, tree: Path) -> None:
    """The tree without what git ignores, compiled, so that a child compiles the mutated file only."""
    tree.mkdir()
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (root / name).exists():
            shutil.copy2(root / name, tree / name)
    compileall.compile_dir(tree / "backend", quiet=2)


def perform(tree: Path, options: argparse.Namespace, deadline_s: float) -> list[dict[str, Any]]:
    """Records coverage unless that is done, then tries the mutants that have no result yet."""
    log = options.out.with_suffix(".log").resolve()
    recorded = coverage(tree, options, log)
    chosen = choose(tree, options)
    done = json.loads(options.out.read_text()) if options.out.exists() else []
    results = {result["key"]: result for result in done}
    screen = os.fdopen(os.dup(1), "w")  # a child's own output goes into the log

    def report(site: "sites.Site", killer: str, status: str = "") -> None:
        status = status or ("killed" if killer else "survived")
        results[site.key] = {"key": site.key, "path": site.path, "line": site.line, "status": status, "by": killer}
        print(f"{len(results):4} {status:9} {site.path}:{site.line} {site.before[:50]} -> {site.after[:50]}",
              file=screen, flush=True)  # fmt: skip
        options.out.write_text(json.dumps(list(results.values()), indent=1))

    attempts = [(site, select(site, recorded, options.most_s)) for site in chosen if site.key not in results]
    for site, names in attempts:
        if not names:
            report(site, "", "uncovered")

    def in_time(at_import: bool) -> Iterator[warm.Attempt]:
        for site, names in attempts:
            if names and runs_at_import(site, recorded) == at_import and time.monotonic() < deadline_s:
                yield site, names

    files = list(dict.fromkeys(name.partition("::")[0] for _, names in in_time(False) for name in names))
    limit = functools.partial(limit_s, recorded["tests"])
    warm.run(tree, in_time(False), files, report, limit, log)
    if options.out.exists():
        results.update({result["key"]: result for result in json.loads(options.out.read_text())})
    judge = Judge(functools.partial(first_failure_anew, tree, limit, log))
    for site, names in in_time(True):
        report(site, judge.killer(site, names))
    return [results[site.key] for site in chosen if site.key in results]


def choose(tree: Path, options: argparse.Namespace) -> list["sites.Site"]:
    """As many sites as asked for, those of another run or tree first."""
    found = sites.find(tree, options.paths)
    preferred: list[str] = []
    if options.prefer:
        preferred = [result["key"] for result in json.loads(options.prefer.read_text())]
    elif options.common_with:
        there = {site.key for site in sites.find(options.common_with, PATHS)}
        preferred = [site.key for site in sites.pick(found, options.seed, len(found)) if site.key in there]
    chosen = sites.pick(found, options.seed, options.count, preferred)[slice(*part_of(options))]
    wanted = set(preferred)
    print(f"{len(found)} sites, {len(chosen)} chosen, {sum(site.key in wanted for site in chosen)} of them preferred")
    return chosen


def coverage(tree: Path, options: argparse.Namespace, log: Path) -> dict[str, Any]:
    """Which tests execute which lines."""
    file = options.coverage or options.out.with_suffix(".coverage.json")
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        runner.preload(found["modules"])
        return found
    runner.preload(FIRST)
    ignored = [path for path in options.ignore if (tree / path).exists()]
    found = runner.record(tree, options.tests, ignored, list(sites.sources(tree, options.paths)), log)
    assert found is not None and found["tests"], log.read_text()[-2000:]
    runner.preload(found["modules"])
    print(f"{len(found['tests'])} tests that pass and start no process")
    file.write_text(json.dumps(found))
    return found


def first_failure_anew(
    tree: Path, limit: warm.Limit, log: Path, names: Sequence[str], site: "sites.Site | None"
) -> str:
    """Mutate the file, run, restore."""
    if site is None:
        return runner.first_failure(tree, names, limit(names), log)
    file = tree / site.path
    source, state = file.read_bytes(), file.stat()
    file.write_bytes(site.applied(source))
    os.utime(file, (1, 1))  # so that the compiled original is not taken for it
    try:
        return runner.first_failure(tree, names, limit(names), log)
    finally:
        file.write_bytes(source)
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


def limit_s(tests: dict[str, Any], names: Sequence[str]) -> float:
    """Far more than these tests took when they were recorded."""
    return 40 + 4 * float(sum(tests[name]["seconds"] for name in names if name in tests))


def runs_at_import(site: "sites.Site", recorded: dict[str, Any]) -> bool:
    """Whether the product or a test file executes it when imported."""
    return site.at_import or not lines_of(site).isdisjoint(recorded["collected"].get(site.path, ()))


def lines_of(site: "sites.Site") -> set[int]:
    return set(range(site.line, site.last_line + 1))


def select(site: "sites.Site", recorded: dict[str, Any], most_s: float) -> list[str]:
    """Tests that execute the expression; for what runs at import, those that execute anything of the file, and of what
    an axis declares those of `READERS`. Those that mirror the module first, after `SOONEST`, up to `most_s` seconds."""
    tests = recorded["tests"]
    by_file = runs_at_import(site, recorded)
    declared = by_file and site.path.startswith(DECLARED)
    lines = lines_of(site)
    found = [
        name
        for name, test in tests.items()
        if (site.path in test["lines"] and (by_file or lines & set(test["lines"][site.path])))
        or (declared and name.startswith(READERS))
    ]
    chosen: list[str] = []
    total_s = 0.0

    def late(name: str) -> tuple[bool, int, float]:
        return not (declared and name.startswith(SOONEST)), -closeness(site.path, name), tests[name]["seconds"]

    for name in sorted(found, key=late):
        total_s += tests[name]["seconds"]
        if chosen and total_s > most_s:
            break
        chosen.append(name)
    return chosen


def closeness(path: str, test: str) -> int:
    """How far the path of a test's file follows that of a module."""
    mirrored = test.partition("::")[0].removeprefix("tests/").replace("test_", "").removesuffix(".py").split("/")
    pairs = zip(path.removesuffix(".py").split("/"), mirrored, strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


if __name__ == "__main__":
    raise SystemExit(main())
