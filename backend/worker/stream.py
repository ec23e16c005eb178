"""Turns a meter's rows into `Tokens` events: times, bytes and text, off the measured path."""

import bisect
import itertools
import threading
from collections.abc import Sequence
from typing import Any

import msgspec
from tokenizers.decoders import DecodeStream

from backend.messages import Samples, Tokens
from backend.worker.marks import Marks
from backend.worker.meter import Meter
from backend.worker.outbox import Outbox
from backend.worker.telemetry import Sampler

FLUSH_EVERY_S = 0.05


class Streamer:
    """A thread that sends what has become ready, 20 times a second, until closed.

    Without a tokenizer (an encoder's passes) the rows have no text.
    """

    def __init__(
        self, meter: Meter, sampler: Sampler, tokenizer: Any, outbox: Outbox, marks: Marks | None = None
    ) -> None:
        self._meter, self._sampler, self._outbox, self._marks = meter, sampler, outbox, marks
        self._tokenizer = tokenizer._tokenizer if tokenizer is not None else None
        self._decoder = DecodeStream(skip_special_tokens=True)
        self._sent = 0
        self._last_s = 0.0
        self._times_s: list[float] = []
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
        self._flush_rows()
        for mark in self._sampler.take_marks():
            token = max(0, bisect.bisect_left(self._times_s, mark.t_s))
            self._outbox.send(msgspec.structs.replace(mark, token=min(token, max(0, len(self._times_s) - 1))))
        for mark in self._marks.take(self._times_s) if self._marks is not None else []:
            self._outbox.send(mark)

    def _flush_rows(self) -> None:
        first, end = self._sent, self._meter.ready()
        samples = self._sampler.take()
        if samples:
            self._outbox.send(Samples([t for t, _ in samples], [m for _, m in samples]))
        if end == first:
            return
        rows = self._meter.rows[first:end]
        ids = self._meter.tokens(first, end)
        t_s = [self._meter.seconds(row) for row in rows]
        latency_s = latencies_s(t_s, self._last_s, first == 0)
        text = ""
        if self._tokenizer is not None:
            text = "".join(self._decoder.step(self._tokenizer, i) or "" for i in ids)
        self._outbox.send(
            Tokens(
                first, t_s, latency_s, [r.kv_sliding for r in rows], [r.kv_full for r in rows],
                [r.memory_bytes for r in rows], ids, text,
            )
        )  # fmt: skip
        self._times_s += t_s
        self.ids += ids
        self.text += text
        self._sent, self._last_s = end, t_s[-1]


def latencies_s(t_s: Sequence[float], last_s: float, prefill: bool) -> list[float]:
    """What each token took, from the times at which they existed and that of the token before them.

    Tokens that came with one step (speculation) have one time, and share what the step took evenly: so a median is
    that of a token, and the sum is the time that passed. The first token of a run is the time to first token; what
    came with it took nothing more.
    """
    found: list[float] = []
    for now_s, group in itertools.groupby(t_s):
        many = len(list(group))
        if prefill and not found:
            found += [now_s - last_s, *[0.0] * (many - 1)]
        else:
            found += [(now_s - last_s) / many] * many
        last_s = now_s
    return found
