"""Turns a meter's rows into `Tokens` events: times, bytes and text, off the measured path."""

import abc
import bisect
import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
from tokenizers.decoders import DecodeStream

from tokendyno.backend.messages import Samples, Tokens
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.measure.annotations import Annotations
from tokendyno.backend.worker.measure.memory import Sampler
from tokendyno.backend.worker.measure.meter import Meter

FLUSH_EVERY_S = 0.05


class Sender(abc.ABC):
    """Sends what is ready at each `flush`: new rows, samples of memory, annotations. `ids`, `text`: of sequence 0."""

    def __init__(self, sampler: Sampler, channel: Channel, annotations: Annotations) -> None:
        self._sampler, self._channel, self._annotations = sampler, channel, annotations
        self._times_s: list[float] = []  # of the rows that were sent
        self.ids: list[int] = []
        self.text = ""

    def flush(self) -> None:
        """Called by a thread of its own until every row is ready, and then once more."""
        if samples := self._sampler.take():
            self._channel.send(Samples([t for t, _ in samples], [m for _, m in samples]))
        self._flush_rows()
        for mark in self._sampler.take_annotations():
            token = min(bisect.bisect_left(self._times_s, mark.t_s), max(0, len(self._times_s) - 1))
            self._channel.send(msgspec.structs.replace(mark, token=token))
        for mark in self._annotations.take(self._times_s):
            self._channel.send(mark)

    @abc.abstractmethod
    def _flush_rows(self) -> None:
        """Send rows that are new, and note their times."""


class Pieces:
    """The text of one sequence, token by token, without special tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer, self._decoder = tokenizer._tokenizer, DecodeStream(skip_special_tokens=True)

    def piece(self, token: int) -> str:
        """What the next token adds: "" until the character that it belongs to is complete."""
        return self._decoder.step(self._tokenizer, token) or ""


HARMONY = ("<|start|>", "<|channel|>", "<|message|>")
"""Special tokens of gpt-oss's chats (https://github.com/openai/harmony), before the role, the channel and the text."""
MOST_HEADER = 80
"""Characters before a message; longer ones are text, of a model that does not keep to the format."""


class ChannelPieces(Pieces):
    """The same, with the channel before each message, such as [analysis] or [final], where the tokenizer has gpt-oss's
    special tokens."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(tokenizer)
        ids = tokenizer.get_added_vocab()
        self._marks = {ids[name]: name for name in HARMONY} if all(name in ids for name in HARMONY) else {}
        self._header: str | None = None
        self._begun = False

    def piece(self, token: int) -> str:
        """What the next token adds to the text as it is shown."""
        added, mark = super().piece(token), self._marks.get(token)
        if mark == "<|message|>" and self._header is not None:
            added, self._header = f"[{self._header.strip()}] ", None
            added = f"\n\n{added}" if self._begun else added
        elif mark is not None:
            self._header = ""
        elif self._header is not None:
            self._header, added = self._header + added, ""
            if len(self._header) > MOST_HEADER:
                added, self._header = self._header, None
        self._begun = self._begun or bool(added)
        return added


class Streamer(Sender):
    """Sends the tokens of one prompt. Without a tokenizer (an encoder's passes) the rows have no text."""

    def __init__(
        self, meter: Meter, sampler: Sampler, tokenizer: Any, channel: Channel, annotations: Annotations
    ) -> None:
        super().__init__(sampler, channel, annotations)
        self._meter = meter
        self._pieces = ChannelPieces(tokenizer) if tokenizer is not None else None
        self._sent = 0
        self._last_s = 0.0

    def _flush_rows(self) -> None:
        first, end = self._sent, self._meter.ready()
        if end == first:
            return
        rows = self._meter.rows[first:end]
        ids = self._meter.tokens(first, end)
        t_s = [self._meter.seconds(row) for row in rows]
        pieces = [self._pieces.piece(token) if self._pieces is not None else "" for token in ids]
        ends = list(itertools.accumulate(map(len, pieces), initial=len(self.text)))[1:]
        sliding, full, *others = map(list, zip(*(row.kv for row in rows), strict=True))
        latent, state, indexed = (sizes if any(sizes) else [] for sizes in others)
        self._channel.send(
            Tokens(
                first=first,
                t_s=t_s,
                latency_s=latencies_s(t_s, self._last_s, first == 0),
                kv_sliding=sliding,
                kv_full=full,
                kv_latent=latent,
                kv_state=state,
                kv_index=indexed,
                memory_bytes=[row.memory_bytes for row in rows],
                ids=ids,
                text="".join(pieces),
                text_ends=ends,
            )
        )
        self._times_s += t_s
        self.ids += ids
        self.text += "".join(pieces)
        self._sent, self._last_s = end, t_s[-1]


def latencies_s(t_s: Sequence[float], last_s: float, prefill: bool) -> list[float]:
    """The latency of each token, from the times at which they existed and the time of the token before them.

    Tokens of one step (speculation) have the same time and share the step's latency evenly, so that the median is per
    token and the sum is the elapsed time; of those of the prefill the first has all of it.
    """
    latencies: list[float] = []
    for now_s, group in itertools.groupby(t_s):
        count = len(list(group))
        if prefill and not latencies:
            latencies += [now_s - last_s, *[0.0] * (count - 1)]
        else:
            latencies += [(now_s - last_s) / count] * count
        last_s = now_s
    return latencies
