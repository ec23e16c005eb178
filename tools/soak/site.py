"""The app in this process: the real page over a bench whose records a fault bench sees first, and a visitor who asks
for the page again and again while the faults happen."""

import json
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backend.engine.bench import Bench
from backend.executors import open_bench
from backend.runs.records import Record

PROBE_EVERY_S = 0.25
PROBE_LIMIT_S = 10.0


@dataclass(slots=True)
class Answers:
    """Seconds that each answer took, and what went wrong with the others."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


class Site:
    """`watch` sees each record of a run after the log took it, on the engine's thread."""

    def __init__(self, bench: Bench, port: int) -> None:
        self.bench, self.port = bench, port
        self.watch: Callable[[str, Record], None] = lambda run_id, record: None
        self.run_id = ""
        self.answers = Answers()
        self._ended = threading.Event()
        append = bench.runs.append

        def seen(run_id: str, record: Record) -> None:
            append(run_id, record)
            self.watch(run_id, record)

        bench.runs.append = seen  # type: ignore[method-assign]
        self._panel = _panel_of(self.ask("config"))
        self._prober = threading.Thread(target=self._probe, name="visitor", daemon=True)
        self._prober.start()

    def ask(self, path: str, body: object = None) -> Any:
        """GET or POST a path of the page; the parsed answer, or its text."""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/{path}", data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(asked, timeout=PROBE_LIMIT_S) as reply:
            text = reply.read().decode()
        return json.loads(text) if text[:1] in '{["' else text

    def pull(self, run_id: str) -> Any:
        """What a viewer of a run gets."""
        question = {"run": run_id, "version": 0, "cur": [[0, 0, 0]]}
        sent = {"data": question, "component_id": self._panel, "fn_name": "pull", "session_hash": "soak"}
        return json.loads(self.ask("gradio_api/component_server", sent))

    def _probe(self) -> None:
        turn = 0
        while not self._ended.wait(PROBE_EVERY_S):
            begin_s, turn = time.monotonic(), turn + 1
            try:
                found = self.pull(self.run_id) if turn % 4 and self.run_id else self.ask("config")
                if "error" in found:
                    self.answers.failures.append(str(found)[:200])
            except Exception as error:  # whatever it is, the page did not answer
                self.answers.failures.append(f"{type(error).__name__}: {error}"[:200])
            self.answers.seconds.append(time.monotonic() - begin_s)

    def close(self) -> None:
        """No more visits."""
        self._ended.set()
        self._prober.join(PROBE_LIMIT_S + 1)


@contextmanager
def serving(history: Path, spares: int = 2) -> Iterator[Site]:
    """The app with this history. `spares`: workers that are started ahead."""
    from ui.page import build

    bench = open_bench(history)
    demo = build(bench)
    port = _free_port()
    demo.launch(server_name="127.0.0.1", server_port=port, prevent_thread_lock=True, quiet=True, ssr_mode=False,
                _frontend=False,  # else Gradio asks its own page, and gives up on a busy machine
                show_error=False, footer_links=[])  # fmt: skip
    bench.start(prewarm=spares)
    site = Site(bench, port)
    try:
        yield site
    finally:
        site.close()
        bench.close()
        demo.close(verbose=False)


def _panel_of(config: Any) -> int:
    (panel,) = [part["id"] for part in config["components"] if part["props"].get("elem_id") == "live"]
    return int(panel)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
