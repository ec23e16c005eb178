"""Delay from token to pixel: `python -m tools.bench.live_panel [--tokens N] [--done N] [--pace fast|quiet]`.

Two synthetic arms at a steady rate go through a real run log, page and browser. Printed: milliseconds from the
creation of a token to the frame whose charts show it, paints per second, lost tokens, the server's share of a core.
`--done 12000 --tokens 16000` starts with 12,000 tokens per arm, to measure long runs.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import psutil

from backend.paths import ROOT
from tests.browser.chromium import chromium
from tests.support.ports import free_port

PROBE = """
window.tokendynoProbe = {
  shown: [0, 0], ms: [], paints: [], arrivals: 0,
  arrived() { this.arrivals++; },
  painted(tookMs) { this.paints.push(tookMs); },
  shows(upto) {
    const now = performance.timeOrigin + performance.now(), panel = document.querySelector('.td-live').live;
    if (!window.begins) return;
    upto.forEach((n, arm) => {
      const t = panel.series[arm].t, begin = window.begins[arm];
      for (let i = this.shown[arm]; i < n; i++) this.ms.push(now - 1000 * (begin + t[i]));
      this.shown[arm] = n;
    });
  },
};
"""


RESULT = """() => {
  const { ms, paints, arrivals } = tokendynoProbe, series = document.querySelector('.td-live').live.series;
  return { ms, paints, arrivals, ids: series.map(arm => arm.t.length), chars: series.map(arm => arm.text.length) };
}"""


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] if values else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=4000, help="tokens per arm")
    parser.add_argument("--done", type=int, default=0, help="tokens per arm at the start")
    parser.add_argument("--rate", type=float, default=200.0, help="tokens per second and arm")
    parser.add_argument("--pace", choices=("fast", "quiet"), default="fast")
    options = parser.parse_args()
    port = free_port()
    figures = [str(figure) for figure in (port, options.tokens, options.done, options.rate)]
    command = [sys.executable, "-m", "tools.bench.lanes", *figures]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert server.stdin is not None and server.stdout is not None
    try:
        run_id = server.stdout.readline().strip()
        with chromium() as browser:
            page = browser.new_page(viewport={"width": 1366, "height": 768})
            page.add_init_script(PROBE)
            page.goto(f"http://127.0.0.1:{port}/?run={run_id}&pace={options.pace}")
            page.wait_for_function("() => document.querySelector('.td-live')?.live.head")
            page.wait_for_timeout(1500)
            server.stdin.write("\n")
            server.stdin.flush()
            said = [json.loads(server.stdout.readline()) for _ in "AB"]
            begins = {one["arm"]: one["begin_s"] for one in said}
            page.evaluate("b => { window.begins = b }", [begins["A"], begins["B"]])
            page.wait_for_timeout(1000)  # the first tokens are drawn at once, and not counted
            page.evaluate("() => Object.assign(tokendynoProbe, { ms: [], paints: [], arrivals: 0 })")
            process = psutil.Process(server.pid)
            cpu, wall_s = process.cpu_times(), time.perf_counter()
            there = "n => document.querySelector('.td-live').live.series.every(arm => arm.t.length === n)"
            page.wait_for_function(there, arg=options.tokens, timeout=600_000, polling=250)
            used, wall_s = process.cpu_times(), time.perf_counter() - wall_s
            page.wait_for_function("() => document.querySelector('.td-live').dataset.over")
            seen = page.evaluate(RESULT)
    finally:
        server.kill()
        server.wait()
    share = (used.user + used.system - cpu.user - cpu.system) / wall_s
    print(f"{options.rate:g} tokens/s per arm, {options.done} to {options.tokens} tokens, pace {options.pace}, "
          f"{wall_s:.1f} s, load {os.getloadavg()[0]:.1f}")  # fmt: skip
    print(f"token to pixel: p50 {quantile(seen['ms'], 0.5):.0f} ms, p95 {quantile(seen['ms'], 0.95):.0f} ms, "
          f"p99 {quantile(seen['ms'], 0.99):.0f} ms of {len(seen['ms'])} tokens")  # fmt: skip
    print(f"paints: {len(seen['paints']) / wall_s:.1f} a second, median {quantile(seen['paints'], 0.5):.0f} ms each; "
          f"replies {seen['arrivals'] / wall_s:.1f} a second")  # fmt: skip
    print(f"tokens lost: {[options.tokens - n for n in seen['ids']]}; characters: {seen['chars']}")
    print(f"server: {100 * share:.1f}% of a core")


if __name__ == "__main__":
    main()
