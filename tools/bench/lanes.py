"""An app without workers, whose only run is synthetic: two arms at a steady rate.

`tools.bench.live_panel` starts it as a separate process, to tell the server's CPU time from the browser's. Prints the
id of the run, starts on a line on standard input, and prints when each arm started.
"""

import json
import random
import sys
import threading
import time

from starlette.middleware import Middleware

from backend.config import ArmRequest, Request, Workload
from backend.counts import RunCounts
from backend.engine.bench import Bench
from backend.executors import open_bench
from backend.messages import Finished, Progress, Samples, Started, Tokens
from backend.predict.kv import KvPoint
from backend.runs.records import ArmEvent, ArmPlanned, Created, Ended, Predicted
from ui.csp import PolicyMiddleware
from ui.gate.gate import Gate
from ui.gate.routes import Hosts
from ui.gate.visitors import Visitors
from ui.page import build
from ui.theme import style, theme

FLUSH_EVERY_S = 0.05  # as backend/worker/measure/stream.py
PROMPT, WINDOW, TOKEN_BYTES = 12, 128, 1024
WORDS = ["the", "little", "fox", "found", "a", "red", "ball", "under", "an", "old", "tree", "and", "ran", "home"]


def make_run(bench: Bench, tokens: int) -> str:
    """A run with two arms that differ in their cache."""
    arms = [ArmRequest("A"), ArmRequest("B", {"cache": "unwindowed"})]
    axes = [{"cache": "dynamic"} | arm.choices for arm in arms]
    planned = [ArmPlanned(arm.name, choices, choices, []) for arm, choices in zip(arms, axes, strict=True)]
    request = Request("pocket", arms, Workload(prompt="x", max_new_tokens=tokens))
    created = Created("bench", time.time(), request, planned, "Two lanes of a clock", "", {}, "cuda")
    return bench.runs.create(created).id


def kv_bytes(arm: str, length: int) -> int:
    return TOKEN_BYTES * (min(length, WINDOW - 1) if arm == "A" else length)


def feed(bench: Bench, run_id: str, arm: str, tokens: int, rate: float, done: int, epoch_s: float) -> None:
    """Send tokens as a worker does: `done` at once, then `rate` a second in batches."""
    noise = random.Random(arm)
    created = epoch_s

    def tell(event: object) -> None:
        bench.runs.append(run_id, ArmEvent(arm, 0, time.time() - created, event))  # type: ignore[arg-type]

    last = PROMPT + tokens - 1
    corners = [KvPoint(n, kv_bytes(arm, n), TOKEN_BYTES * n) for n in (PROMPT, WINDOW - 1, last)]
    bench.runs.append(run_id, Predicted(arm, corners))
    tell(Started(PROMPT, 1, tokens, []))
    tell(Progress("run", "begin", 0.0))
    sent, begin_s = 0, time.time() - done / rate
    sys.stdout.write(json.dumps({"arm": arm, "begin_s": begin_s}) + "\n")  # one write, since two threads print
    sys.stdout.flush()
    while sent < tokens:
        due = min(tokens, int((time.time() - begin_s) * rate))
        if due > sent:
            at = range(sent, due)
            tell(
                Tokens(
                    sent, [i / rate for i in at],
                    [0.05 if noise.random() < 0.002 else noise.gauss(5e-3, 3e-4) for _ in at],
                    [kv_bytes(arm, PROMPT + i) for i in at], [TOKEN_BYTES * (PROMPT + i) for i in at],
                    [2**29 + i for i in at], list(at), "".join(" " + noise.choice(WORDS) for _ in at),
                )
            )  # fmt: skip
            tell(Samples([due / rate], [2**29 + due * 4096]))
            sent = due
        time.sleep(FLUSH_EVERY_S)
    text = bench.runs.get(run_id).arms[arm].text  # type: ignore[union-attr]
    tell(Finished("length", text, 0.01, tokens / rate, 2**29, "memory of a clock", "clock", [], RunCounts()))


def main() -> None:
    port, tokens, done = (int(text) for text in sys.argv[1:4])
    rate = float(sys.argv[4])
    bench = open_bench(None)
    page = build(bench)
    gate = Middleware(Gate, blocks=page, hosts=Hosts(machine=False), visitors=Visitors(bench.limits))
    page.launch(
        server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, quiet=True, ssr_mode=False,
        run_history=False, theme=theme(), css=style(), app_kwargs={"middleware": [Middleware(PolicyMiddleware), gate]},
    )  # fmt: skip
    run_id = make_run(bench, tokens)
    print(run_id, flush=True)
    sys.stdin.readline()
    epoch_s = bench.runs.get(run_id).created.created  # type: ignore[union-attr]
    threads = [
        threading.Thread(target=feed, args=(bench, run_id, arm, tokens, rate, done, epoch_s)) for arm in ("A", "B")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.runs.append(run_id, Ended(time.time() - epoch_s, "done"))
    sys.stdin.readline()


if __name__ == "__main__":
    main()
