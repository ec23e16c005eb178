"""Overhead of watching: `python -m tools.bench.watched [--model M] [--pairs N] [--tokens N] [--viewer page|none]
[--beside]`.

Tokens per second of arm A through the whole app (app.py, a run submitted through the page in headless Chromium, its
charts streaming), against a bare script that only calls `generate` with the same weights, dtype, cache, prompt, token
count, threads and environment. Both run in turn: bare, app, bare, app, ... The script is a new process each time, as
the run has one. Both times are those of the whole `generate` call. Printed: the ratio of each pair, their median and
spread, and the time from token to pixel in the same runs: from when the worker had a token to its arrival in the page,
and to the frame whose charts show it.
`--pace` as in the page's address; without it the page paces itself, as users get it. `--beside` adds to each pair the
bare script beside a process that only counts, for as large a share of a core as browser and web process had: where that
costs as much, the machine's cores share what the model needs, and the page could only use less.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import psutil

from backend.config import ArmRequest, Request, Workload
from backend.executors import open_bench
from backend.executors.subprocess import environment
from backend.paths import ROOT
from backend.views import live
from tests.browser.driver import Driver
from tests.support.ports import free_port

PROMPT = "Once upon a time, there was a little fox named Pip."


# --- the bare script --------------------------------------------------------------------------------


def bare(model_ref: str, tokens: int) -> None:
    """The bare process: load, then one timed `generate` for each line on standard input."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, GenerationConfig

    from backend.models import resolve

    source = resolve(model_ref).source
    device = "cuda" if torch.cuda.is_available() and os.environ.get("TOKENDYNO_DEVICE") != "cpu" else "cpu"
    if source.kind == "random":
        from backend.worker.load import random_model

        model = random_model.random_model(source.config_json, "auto", None, device).eval()
        tokenizer: Any = random_model.byte_tokenizer(model.config.vocab_size)
    else:
        path = Path(source.path)
        gguf = {"gguf_file": path.name} if source.kind == "gguf" else {}
        folder = path.parent if gguf else path
        tokenizer = AutoTokenizer.from_pretrained(folder, **gguf)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", **gguf).to(device).eval()
    pad = model.generation_config.pad_token_id or tokenizer.pad_token_id or 0
    model.generation_config = GenerationConfig(pad_token_id=pad)
    if device == "cpu":
        from backend.worker.load.loader import choose_threads

        choose_threads(sum(p.nbytes for p in model.parameters()))  # as the worker does
    ids = tokenizer(PROMPT, return_tensors="pt")["input_ids"].to(device)
    sync = torch.cuda.synchronize if device == "cuda" else lambda: None

    def run(count: int) -> tuple[float, float]:
        settings = GenerationConfig(
            max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=pad, disable_compile=True
        )
        cache = DynamicCache(config=model.config)
        sync()
        begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
        with torch.inference_mode():
            out = model.generate(
                ids, attention_mask=torch.ones_like(ids), past_key_values=cache, generation_config=settings
            )
        sync()
        took = time.perf_counter() - begin_s, time.process_time() - begin_cpu_s
        assert out.shape[1] == ids.shape[1] + count
        return took

    run(8)
    print(json.dumps({"ready": True, "dtype": str(model.dtype), "threads": torch.get_num_threads()}), flush=True)
    for _ in sys.stdin:
        print(json.dumps(run(tokens)), flush=True)


@contextmanager
def bare_process(model: str, tokens: int) -> Iterator[Any]:
    command = [sys.executable, "-m", "tools.bench.watched", "--bare", "--model", model, "--tokens", str(tokens)]
    pipe = subprocess.PIPE
    # A session of its own, as workers have: Linux shares CPU time between sessions.
    process = subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, env=environment(), cwd=ROOT, start_new_session=True
    )
    assert process.stdin is not None and process.stdout is not None
    ready = json.loads(process.stdout.readline())

    def run() -> tuple[float, float]:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        wall_s, cpu_s = json.loads(process.stdout.readline())
        return float(wall_s), float(cpu_s)

    try:
        yield run, str(ready["dtype"]).removeprefix("torch.")
    finally:
        process.kill()
        process.wait()


SPIN = """
import sys, time
share = float(sys.argv[1])
while True:
    end = time.monotonic() + 0.01 * share
    while time.monotonic() < end:
        pass
    time.sleep(0.01 * (1 - share))
"""


@contextmanager
def spinner(share: float) -> Iterator[None]:
    """A process beside that uses this share of one core and no memory."""
    process = subprocess.Popen([sys.executable, "-c", SPIN, str(min(1.0, share))])
    try:
        yield
    finally:
        process.kill()
        process.wait()


PROBE = """
window.tokendynoProbe = {
  run: '', shown: [0, 0], pulled: [0, 0], ms: [], pulledMs: [], paints: [],
  arrived(counts) { this.note(counts, 'pulled', 'pulledMs'); },
  shows(counts) { this.note(counts, 'shown', 'ms'); },
  painted(ms) { this.paints.push(ms); },
  note(counts, upto, delays) {
    const panel = document.querySelector('.td-live'), { head, series } = panel.live;
    const now = performance.timeOrigin + performance.now();
    if (this.run !== panel.dataset.run) {
      Object.assign(this, { run: panel.dataset.run, shown: [0, 0], pulled: [0, 0], ms: [], pulledMs: [], paints: [] });
    }
    if (head) counts.forEach((n, arm) => {
      const run = head.arms[arm].phases.find(phase => phase.name === 'run');
      if (!run) return;
      const begin = 1000 * (head.created + run.begin_s);
      for (let i = this[upto][arm]; i < n; i++) this[delays].push(now - begin - 1000 * series[arm].t[i]);
      this[upto][arm] = n;
    });
  },
};
"""
"""Of each token of both arms: milliseconds from its creation to its arrival in the page, and to the frame that shows
it."""


# --- the app ----------------------------------------------------------------------------------------


@contextmanager
def app_process(folder: Path, engine: bool) -> Iterator[tuple[str, Path, psutil.Process]]:
    """Start an app: (address, history file, process)."""
    port, history = free_port(), folder / "history.sqlite"
    command = [sys.executable, "app.py", "--port", str(port), "--history", str(history)]
    if engine:
        command = [sys.executable, "-m", "tools.bench.watched", "--serve", str(port), str(history)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "ready" in line, f"app.py said {line!r}"
    try:
        yield f"http://127.0.0.1:{port}", history, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


class Page:
    """The Compare page as a user drives it."""

    def __init__(self, address: str, model: str, tokens: int, watch: bool, pace: str = "") -> None:
        from playwright.sync_api import sync_playwright

        self.watch = watch
        self._play = sync_playwright().start()
        found = os.environ.get("CHROMIUM") or next(
            (path for path in ("/usr/bin/chromium", "/usr/bin/chromium-browser") if Path(path).exists()), None
        )
        self._browser = self._play.chromium.launch(executable_path=found, args=["--no-sandbox"])
        self.page = self._browser.new_page(viewport={"width": 1280, "height": 900})
        self.page.add_init_script(PROBE)
        self.page.goto(f"{address}/?view=compare{f'&pace={pace}' if pace else ''}")
        self.page.locator("#run").wait_for(timeout=60_000)
        self.page.wait_for_timeout(1500)
        if model != "pocket":
            box = self.page.locator("#model input")
            box.fill(model)
            box.press("Enter")
            box.blur()
        Driver(self.page, address).choose("preset-a", "baseline")  # what a newcomer finds names a dtype
        self.page.locator("#prompt textarea").fill(PROMPT)
        self.page.locator("#max-new-tokens input").fill(str(tokens))
        self.page.locator("#max-new-tokens input").blur()
        self.page.locator("#more-button").click()
        self.page.locator("#ignore-eos input").check()
        self.page.wait_for_timeout(1000)

    def start(self) -> None:
        self.page.locator("#run").click()
        if not self.watch:
            self.page.wait_for_timeout(200)
            self.page.goto("about:blank")

    def delays_ms(self) -> dict[str, list[float]]:
        """Of every token that this page showed: until it was there, and until it was seen. Of each paint: how long."""
        if not self.watch:
            return {}
        self.page.wait_for_function("() => document.querySelector('.td-live').dataset.over", timeout=60_000)
        self.page.wait_for_timeout(1000)
        found: dict[str, list[float]] = self.page.evaluate(
            "() => ({ 'token to page': tokendynoProbe.pulledMs, 'token to pixel': tokendynoProbe.ms, "
            "'paint': tokendynoProbe.paints })"
        )
        return found

    def close(self) -> None:
        self._browser.close()
        self._play.stop()


class Viewer:
    """Replaces the browser where there is none: polls over HTTP ten times a second, from another process."""

    def __init__(self, address: str, model: str, tokens: int, watch: bool, pace: str = "") -> None:
        self.address, self.body, self.watch = address, {"model": model, "tokens": tokens}, watch

    def start(self) -> None:
        run = self._post("/run", self.body)["run"]
        if self.watch:
            threading.Thread(target=self._pull, args=(run,), daemon=True).start()

    def _pull(self, run: str) -> None:
        version, cursors, ended = 0, [[0, 0, 0]] * 2, False
        while not ended:
            delta = self._post("/pull", {"run": run, "version": version, "cur": cursors})
            version, ended = delta["version"], delta["ended"]
            cursors = [[lane["n"], lane["sn"], lane["cn"]] for lane in delta["lanes"]]
            time.sleep(0.1)

    def _post(self, path: str, body: Any) -> Any:
        with urllib.request.urlopen(self.address + path, json.dumps(body).encode(), timeout=60) as answer:
            return json.load(answer)

    def delays_ms(self) -> dict[str, list[float]]:
        return {}

    def close(self) -> None:
        pass


def serve(port: int, history: Path) -> None:
    """Replaces the app: the same engine and the same cursor, behind an HTTP server of the standard library."""
    bench = open_bench(history)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path == "/run":
                arms = [ArmRequest("A"), ArmRequest("B", {"cache": "unwindowed"})]
                work = Workload(prompt=PROMPT, max_new_tokens=asked["tokens"], ignore_eos=True)
                answer = json.dumps({"run": bench.submit(Request(asked["model"], arms, work))}).encode()
            else:
                run = bench.runs.get(asked["run"])
                assert run is not None
                answer = msgspec.json.encode(live.delta(run, asked["version"], asked["cur"], 0.0))
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    bench.start(prewarm=2)
    print("ready", flush=True)
    try:
        server.serve_forever()
    finally:
        bench.close()


def last_run(history: Path, after: str | None) -> Any:
    """The newest run of the app once it has ended and is another than `after`. Read from its history file."""
    from backend.hosting.visitor import LOCAL
    from backend.runs.log import RunLog
    from backend.runs.store import Store

    store = Store(history)
    try:
        deadline_s = time.monotonic() + 600
        while time.monotonic() < deadline_s:
            newest = store.newest(LOCAL)
            run = RunLog(store).get(newest) if newest and newest != after else None
            if run is not None and run.ended:
                assert run.status == "done", run.message
                return run
            time.sleep(0.5)
        raise TimeoutError("the run did not end")
    finally:
        store.close()


def cpu_s(processes: list[psutil.Process]) -> float:
    """Processor seconds of these processes so far; one that is gone counts nothing."""
    total = 0.0
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def browsers() -> list[psutil.Process]:
    """The browser's processes, started by this one."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "chrom" in process.name():
                found.append(process)
    return found


def load_average() -> str:
    return Path("/proc/loadavg").read_text().split()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="pocket", help="as tokendyno takes it; a .gguf path for SmolLM2")
    parser.add_argument("--pairs", type=int, default=5, help="0: only the first, which gives no ratio")
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--pace", choices=("fast", "quiet"), default="", help="of the page; default: its own")
    parser.add_argument("--viewer", choices=("page", "none"), default="page", help="none: the page is left at once")
    parser.add_argument(
        "--engine", action="store_true", help="the engine behind a bare HTTP server, no page, no browser"
    )
    parser.add_argument("--beside", action="store_true", help="the bare script beside a process of the same share, too")
    parser.add_argument("--bare", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        bare(options.model, options.tokens)
        return
    if options.serve:
        serve(int(options.serve[0]), Path(options.serve[1]))
        return
    make = Viewer if options.engine else Page
    ratios, last = [], None

    def run_bare() -> tuple[float, float, str]:
        with bare_process(options.model, options.tokens) as (run, dtype):
            return *run(), dtype

    with (
        tempfile.TemporaryDirectory() as folder,
        app_process(Path(folder), options.engine) as (address, history, app),
    ):
        for number in range(options.pairs + 1):
            page = make(address, options.model, options.tokens, options.viewer == "page", options.pace)
            before = load_average()
            bare_s, bare_cpu_s, dtype = run_bare()
            watching = browsers()
            begin_s, web_s, browser_s = time.monotonic(), cpu_s([app]), cpu_s(watching)
            page.start()
            run = last_run(history, last)
            took_s = time.monotonic() - begin_s
            web, browser = (cpu_s([app]) - web_s) / took_s, (cpu_s(watching) - browser_s) / took_s
            delays_ms = page.delays_ms()
            page.close()
            last, finished = run.id, run.arms["A"].finished
            made = len(run.arms["A"].ids)
            worker_s = (finished.extra.cpu_own_cores or 0.0) * finished.wall_s  # of the measured run alone
            assert made == options.tokens, f"{made} tokens instead of {options.tokens}"
            used = next(row.finding.effective for row in run.ledger("A") if row.finding.axis == "dtype")
            assert used == dtype, f"arm A ran in {used}, the bare script in {dtype}"
            ratio = bare_s / finished.wall_s
            note = "(first pair: not counted)" if number == 0 else ""
            print(
                f"pair {number}: bare {options.tokens / bare_s:.2f} tok/s, app {made / finished.wall_s:.2f} tok/s, "
                f"ratio {ratio:.3f}; CPU ms a token: bare {1e3 * bare_cpu_s / made:.2f}, "
                f"worker {1e3 * worker_s / made:.2f}; "
                f"of a core: web process {web:.0%}, browser {browser:.0%}; load {before} {note}",
                flush=True,
            )
            if number:
                ratios.append(ratio)
            if options.beside:
                with spinner(web + browser):
                    beside_s, _, _ = run_bare()
                print(f"  bare beside a process of the same share: ratio {bare_s / beside_s:.3f}", flush=True)
            for name, each_ms in delays_ms.items():
                each_ms.sort()
                quantiles = ", ".join(f"p{q} {each_ms[len(each_ms) * q // 100]:.0f} ms" for q in (50, 95, 99))
                print(f"  {name}: {quantiles} of {len(each_ms)}", flush=True)
    if not ratios:
        return
    viewer = "HTTP" if options.engine and options.viewer == "page" else options.viewer
    print(
        f"ratio app / bare: median {statistics.median(ratios):.3f}, {min(ratios):.3f} to {max(ratios):.3f}, "
        f"{len(ratios)} pairs of {options.tokens} tokens, model {options.model}, viewer: {viewer}"
    )


if __name__ == "__main__":
    main()
