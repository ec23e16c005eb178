"""Time until the page can be used: `python -m tools.bench.startup [--times 3]`.

Printed for each start: seconds until app.py reports that it is ready; then, in a browser that was already open, seconds
from the first visit (nothing cached) and from a reload until Run works and the panel is drawn; and the resident memory
of the web process at that time.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import psutil

from backend.paths import ROOT
from tests.browser.chromium import chromium
from tests.support.ports import free_port


def _visit(page: Any, address: str) -> float:
    """Seconds from navigation until the page can be used."""
    begin_s = time.perf_counter()
    page.goto(address)
    page.wait_for_selector("#run:not([disabled])")
    page.wait_for_selector("#live .main-svg", state="attached")
    return time.perf_counter() - begin_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for number in range(options.times):
            page, port = browser.new_page(), free_port()
            command = [sys.executable, "app.py", "--port", str(port), "--history", f"{folder}/{number}.sqlite"]
            begin_s = time.perf_counter()
            app = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
            assert app.stdout is not None
            try:
                assert "ready" in app.stdout.readline()
                ready_s = time.perf_counter() - begin_s
                visits_s = [_visit(page, f"http://127.0.0.1:{port}/?view=compare") for _ in range(2)]
                resident = psutil.Process(app.pid).memory_info().rss / 2**20
                print(f"start {number + 1}: ready {ready_s:.2f} s, first visit {visits_s[0]:.2f} s, again "
                      f"{visits_s[1]:.2f} s, resident {resident:.0f} MiB, load {os.getloadavg()[0]:.1f}",
                      flush=True)  # fmt: skip
            finally:
                app.terminate()
                app.wait(30)
                page.close()


if __name__ == "__main__":
    main()
