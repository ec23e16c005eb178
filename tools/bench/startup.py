"""Time until the page can be used: `python -m tools.bench.startup [--times 3] [--story]`.

Printed for each start: seconds until app.py reports that it is ready; then, in a browser that was already open, seconds
from the first visit (nothing cached) and from a reload until Run works, both arms have their verdicts and the panel
says what to do; the CPU time that app.py and the page's thread took for it, which a busy machine changes less; and the
resident memory of the web process. With --story the visits are those of somebody without a GPU, from the bare address
until a story plays.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import psutil

from tests.browser.chromium import chromium
from tests.support.ports import free_port
from tokendyno.backend.paths import ROOT

COMPARE = (
    "document.querySelector('#run:not([disabled])') && document.querySelector('#verdicts-b .td-memory') && "
    "document.querySelector('#live .td-empty-run:not(:empty)')"
)
STORY = (
    "document.querySelector('#story-live .td-race')?.textContent.includes('Pause') && "
    "document.querySelector('#story-live .td-plot .main-svg')"
)
"""When it plays: the clock runs, and the charts are drawn."""


def _visit(page: Any, address: str, done: str) -> tuple[float, float]:
    """Seconds from navigation until `done` holds in the page, and of the CPU of its thread."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    begin_s = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_function(done, timeout=120_000)
    spent_s = time.perf_counter() - begin_s
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return spent_s, float(metrics["TaskDuration"])


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--story", action="store_true", help="until a story plays, for a visitor without a GPU")
    options = parser.parse_args()
    query, done = ("", STORY) if options.story else ("?view=compare", COMPARE)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for number in range(options.times):
            page, port = browser.new_page(), free_port()
            command = [sys.executable, "app.py", "--port", str(port), "--history", f"{folder}/{number}.sqlite"]
            begin_s = time.perf_counter()
            app = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            assert app.stdout is not None
            try:
                assert "ready" in app.stdout.readline()
                ready_s, ready_cpu_s = time.perf_counter() - begin_s, _cpu_s(app.pid)
                visits_s = [_visit(page, f"http://127.0.0.1:{port}/{query}", done) for _ in range(2)]
                resident = psutil.Process(app.pid).memory_info().rss / 2**20
                first, again = (f"{spent_s:.2f} s ({cpu_s:.2f} s of CPU)" for spent_s, cpu_s in visits_s)
                print(
                    f"start {number + 1}: ready {ready_s:.2f} s ({ready_cpu_s:.2f} s of CPU), first visit {first}, "
                    f"again {again}, resident {resident:.0f} MiB, load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
            finally:
                app.terminate()
                app.wait(30)
                page.close()


if __name__ == "__main__":
    main()
