"""Turns a meter's rows into `Tokens` events: times, bytes and text, off the measured path."""

import threading
from typing import Any

from tokenizers.decoders import DecodeStream

from backend.messages import Samples, Tokens
from backend.worker.meter import Meter
from backend.worker.outbox import Outbox
from backend.worker.telemetry import Sampler

FLUSH_EVERY_S = 0.05


class Streamer:
    """A thread that sends what has become ready, 20 times a second, until closed."""

    def __init__(self, meter: Meter, sampler: Sampler, tokenizer: Any, outbox: Outbox) -> None:
        self._meter, self._sampler, self._outbox = meter, sampler, outbox
        self._tokenizer = tokenizer._tokenizer
        self._decoder = DecodeStream(skip_special_tokens=True)
        self._sent = 0
        self._last_s = 0.0
        self.ids: list[int] = []
        self.text = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="streamer", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def close(self) -> None:
        """Send the rest (every row must be ready by now) and end."""
        self._stop.set()
        self._thread.join()
        self._flush()

    def _work(self) -> None:
        while not self._stop.wait(FLUSH_EVERY_S):
            self._flush()

    def _flush(self) -> None:
        first, end = self._sent, self._meter.ready()
        samples = self._sampler.take()
        if samples:
            self._outbox.send(Samples([t for t, _ in samples], [m for _, m in samples]))
        if end == first:
            return
        rows = self._meter.rows[first:end]
        ids = self._meter.tokens(first, end)
        t_s = [self._meter.seconds(row) for row in rows]
        latency_s = [now - before for now, before in zip(t_s, [self._last_s, *t_s], strict=False)]
        text = "".join(self._decoder.step(self._tokenizer, i) or "" for i in ids)
        self._outbox.send(
            Tokens(
                first, t_s, latency_s, [r.kv_sliding for r in rows], [r.kv_full for r in rows],
                [r.memory_bytes for r in rows], ids, text,
            )
        )  # fmt: skip
        self.ids += ids
        self.text += text
        self._sent, self._last_s = end, t_s[-1]
