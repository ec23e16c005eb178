"""A page over a bench without workers, whose one run is fed by a clock: two lanes at a steady rate.

Started by `tests.bench.live_panel` as a process of its own, so that the server's share of the processor can be
told from the browser's. Prints the run's id, begins at a line on standard input, prints when each lane began.
"""

import json
import random
import sys
import threading
import time

from starlette.middleware import Middleware

from backend.config import Workload
from backend.engine import Bench
from backend.messages import Finished, Progress, Samples, Started, Tokens
from backend.records import ArmEvent, ArmPlanned, ArmRequest, Created, Ended, Foretold, KvPoint, Request
from ui.page import build
from ui.policy import PolicyMiddleware
from ui.theme import style, theme

FLUSH_EVERY_S = 0.05  # as backend/worker/stream.py
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
    """Tokens as a worker sends them: `done` at once, then `rate` a second in batches."""
    noise = random.Random(arm)
    created = epoch_s

    def tell(event: object) -> None:
        bench.runs.append(run_id, ArmEvent(arm, 0, time.time() - created, event))  # type: ignore[arg-type]

    last = PROMPT + tokens - 1
    corners = [KvPoint(n, kv_bytes(arm, n), TOKEN_BYTES * n) for n in (PROMPT, WINDOW - 1, last)]
    bench.runs.append(run_id, Foretold(arm, corners))
    tell(Started(PROMPT, 1, tokens, []))
    tell(Progress("run", "begin", 0.0))
    sent, begin_s = 0, time.time() - done / rate
    sys.stdout.write(json.dumps({"arm": arm, "begin_s": begin_s}) + "\n")  # one write: two lanes speak at once
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
    text = bench.runs.get(run_id).lanes[arm].text  # type: ignore[union-attr]
    tell(Finished("length", text, 0.01, tokens / rate, 2**29, "memory of a clock", "clock", [], {}))


def main() -> None:
    port, tokens, done = (int(text) for text in sys.argv[1:4])
    rate = float(sys.argv[4])
    bench = Bench(None)
    build(bench).launch(
        server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, quiet=True, ssr_mode=False,
        run_history=False, theme=theme(), css=style(), app_kwargs={"middleware": [Middleware(PolicyMiddleware)]},
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
