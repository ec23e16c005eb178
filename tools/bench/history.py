"""How fast a large history opens and is searched: `python -m tools.bench.history [--runs 10000] [--page]`.

The runs are generated: several models, machines and choices, each with the records of two arms. Printed are seconds
to write them, to open the file, to list the first page, and milliseconds of each kind of search (of the clock, and of
the processor); with `--page` also what a browser takes to show the list, and to show it filtered after the
last key was pressed.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from backend.history.history import History
from backend.history.search import Search, read_search
from backend.hosting.limits import LIMITS
from backend.hosting.visitor import LOCAL_USER
from backend.paths import ROOT
from backend.runs.log import RunLog
from backend.runs.records import ArmPlanned, Created, Record
from backend.runs.statistics import median
from backend.runs.store import Store
from tests.browser.chromium import chromium
from tests.support.kept_runs import H200, LAPTOP
from tests.support.ports import free_port
from tests.support.runs import arm_records, created, ended

MODELS = ("Llama-3-8B", "Mistral-7B-v0.1", "gpt-oss-20b", "pocket", "Qwen3-4B-Instruct-2507")
CHOICES: tuple[dict[str, str], ...] = (
    {},
    {"cache": "static"},
    {"compile": "default"},
    {"attention": "eager"},
    {"quantization": "quanto-int4"},
)
WORDS = ("fox", "robot", "sea", "story", "window", "kernel", "latency", "ocean", "winter", "machine")
SEARCHES = {
    "nothing": {},
    "a word": {"q": "ocean"},
    "three words": {"q": "fox window llama"},
    "a word that is nowhere": {"q": "nowhere"},
    "model": {"model": "gpt-oss"},
    "axis=choice": {"axis": "cache=static"},
    "machine": {"machine": "H200"},
    "dates": {"since": "2026-10-01", "until": "2026-10-31"},
    "all of them": {"q": "ocean", "model": "llama", "axis": "cache", "machine": "H200", "since": "300d"},
}


def generated(number: int, of: int, draw: random.Random) -> list[Record]:
    """A run with two arms of 30 tokens."""
    plain = created(f"{number:024x}", at_s=time.time() - 300.0 * (of - number))
    choices = [draw.choice(CHOICES), draw.choice(CHOICES)]
    arms = [
        msgspec.structs.replace(arm, choices=dict(one)) for arm, one in zip(plain.request.arms, choices, strict=True)
    ]
    planned = [
        ArmPlanned(a.name, {**a.requested, **c}, {**a.planned, **c}, [])
        for a, c in zip(plain.arms, choices, strict=True)
    ]
    model, prompt = draw.choice(MODELS), " ".join(draw.choices(WORDS, k=60))
    request = msgspec.structs.replace(
        plain.request, model=model, arms=arms, workload=replace(plain.request.workload, prompt=prompt)
    )
    first: Created = msgspec.structs.replace(
        plain, request=request, arms=planned, model_label=model, machine=draw.choice([H200, LAPTOP]),
        versions={"torch": "2.11.0", "transformers": "5.22.2"},
    )  # fmt: skip
    gain, less = draw.uniform(1.1, 4), draw.randrange(5, 60)
    line = f"B generates {gain:.1f}x faster, takes {less}% less memory, and writes the same text."
    return [first, *arm_records("A", 30), *arm_records("B", 30), msgspec.structs.replace(ended(), verdict=line)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--keep", type=Path, help="write the history there, and leave it")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.keep or Path(folder) / "history.sqlite"
        _write(path, options.runs)
        _read(path, options.times)
        if options.page:
            _browse(path)


def _write(path: Path, runs: int) -> None:
    draw, begin_s = random.Random(0), time.perf_counter()
    store = Store(path)
    for number in range(runs):
        for record in generated(number, runs, draw):
            store.add(f"{number:024x}", record)
        if number % 500 == 499:
            store.flush()
    store.close()
    print(f"{runs:,} runs written in {time.perf_counter() - begin_s:.1f} s, {path.stat().st_size / 2**20:.0f} MiB")


def _read(path: Path, times: int) -> None:
    begin_s = time.perf_counter()
    store = Store(path)
    kept = History(store, RunLog(store), LIMITS["local"])
    opened_s = time.perf_counter() - begin_s
    kept.listing.find(Search(), LOCAL_USER)
    print(f"opened in {opened_s:.3f} s, and listed in {time.perf_counter() - begin_s:.3f} s")
    for name, asked in SEARCHES.items():
        found = kept.listing.find(read_search(asked), LOCAL_USER)
        took = _ms(lambda asked=asked: kept.listing.find(read_search(asked), LOCAL_USER), times)  # type: ignore[misc]
        print(f"{name:24} {found.total:6,} runs, {_said(took)}")
    last = found.kept // 50 - 1
    took = _ms(lambda: kept.listing.find(Search(page=last), LOCAL_USER), times)
    print(f"{'the last page':24} {found.kept:6,} runs, {_said(took)}")
    store.close()


def _ms(act: Callable[[], object], times: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each time: of the clock, and of the processor."""
    took, worked = list[float](), list[float]()
    for _ in range(times):
        begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
        act()
        took.append(1e3 * (time.perf_counter() - begin_s))
        worked.append(1e3 * (time.process_time() - begin_cpu_s))
    return took, worked


def _said(found: tuple[list[float], list[float]]) -> str:
    took, worked = found
    return f"median {median(took):6.1f} ms, worst {max(took):6.1f} ms, processor {median(worked):6.1f} ms"


def _browse(path: Path) -> None:
    port = free_port()
    command = [sys.executable, "app.py", "--port", str(port), "--history", str(path)]
    app = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert app.stdout is not None
    try:
        assert "ready" in app.stdout.readline()
        with chromium() as browser:
            page = browser.new_page()
            for turn in ("first visit", "second visit"):
                begin_s = time.perf_counter()
                page.goto(f"http://127.0.0.1:{port}/?view=history")
                page.wait_for_selector(".td-runs tbody tr")
                print(f"{turn}: rows after {time.perf_counter() - begin_s:.2f} s, of which the page itself takes most")
            page.get_by_role("tab", name="Fit").click()
            begin_s = time.perf_counter()
            page.get_by_role("tab", name="History").click()
            page.wait_for_selector(".td-runs tbody tr")
            print(f"the tab: rows after {1e3 * (time.perf_counter() - begin_s):.0f} ms")
            for words in ("ocean", "fox window llama", "nowhere"):
                box = page.locator(".td-search [name=q]")
                box.fill("")
                page.wait_for_function("() => document.querySelector('.td-history').dataset.shown > 9000")
                before = page.evaluate("document.querySelector('.td-history').dataset.shown")
                box.fill(words)
                begin_s = time.perf_counter()
                page.wait_for_function(
                    f"() => document.querySelector('.td-history').dataset.shown !== {before!r}", polling="raf"
                )
                took_ms = 1e3 * (time.perf_counter() - begin_s)
                print(f"{words!r}: filtered {took_ms:.0f} ms after the key, 80 of them the pause")
    finally:
        app.terminate()
        app.wait(30)


if __name__ == "__main__":
    main()
