"""Many requests of one arm, folded from its events into columns that only grow."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from tokendyno.backend.messages import (
    DECODE,
    NO_TOKEN,
    PREFILL,
    BatchEvent,
    EndReason,
    PageMoves,
    PagesAllocated,
    RequestEnds,
    Steps,
    WaitReason,
    Waits,
)


@dataclass(slots=True)
class RequestRow:
    """One request so far. Times are seconds since the run began; None: not yet.

    prompt_tokens  as the model received them; 0 until its prompt was processed
    waited_for     why it waited, in order, each reason once
    reason         why it ended, "" while it has not
    """

    start_s: float | None = None
    end_s: float | None = None
    prompt_tokens: int = 0
    ids: list[int] = field(default_factory=list)
    token_s: list[float] = field(default_factory=list)
    waited_for: list[WaitReason] = field(default_factory=list)
    reason: EndReason | str = ""
    text: str = ""

    def copy(self) -> "RequestRow":
        return replace(self, ids=self.ids[:], token_s=self.token_s[:], waited_for=self.waited_for[:])

    @property
    def first_token_s(self) -> float | None:
        return self.token_s[0] if self.token_s else None


@dataclass(slots=True)
class BatchSeries:
    """Columns as in `messages.Steps`, `Waits` and `PageMoves`; `part_ends[i]` is where step i's parts end."""

    begin_s: list[float] = field(default_factory=list)
    end_s: list[float] = field(default_factory=list)
    part_ends: list[int] = field(default_factory=list)
    padding: list[int] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    free_bytes: list[int] = field(default_factory=list)
    request: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    wait_s: list[float] = field(default_factory=list)
    wait_request: list[int] = field(default_factory=list)
    wait_reason: list[WaitReason] = field(default_factory=list)
    move_step: list[int] = field(default_factory=list)
    move_group: list[int] = field(default_factory=list)
    move_page: list[int] = field(default_factory=list)
    move_request: list[int] = field(default_factory=list)
    end_request: list[int] = field(default_factory=list)
    pages: PagesAllocated | None = None
    requests: dict[int, RequestRow] = field(default_factory=dict)

    def row(self, request: int) -> RequestRow:
        return self.requests.setdefault(request, RequestRow())

    @property
    def done(self) -> int:
        return len(self.end_request)

    def take(self, event: BatchEvent) -> None:
        """Fold in one more event. ValueError if its steps do not continue the series."""
        match event:
            case Steps():
                self._take_steps(event)
            case Waits():
                self.wait_s += event.t_s
                self.wait_request += event.request
                self.wait_reason += event.reason
                for request, reason in zip(event.request, event.reason, strict=True):
                    row = self.row(request)
                    if reason not in row.waited_for:
                        row.waited_for.append(reason)
            case PageMoves():
                self.move_step += event.step
                self.move_group += event.group
                self.move_page += event.page
                self.move_request += event.request
            case PagesAllocated():
                self.pages = event
            case RequestEnds():
                for request, t_s, ended, text in zip(event.request, event.t_s, event.reason, event.text, strict=True):
                    row = self.row(request)
                    row.end_s, row.reason, row.text = t_s, ended, text
                self.end_request += event.request

    def _take_steps(self, event: Steps) -> None:
        if event.first != len(self.end_s):
            raise ValueError(f"steps out of order: {event.first} after {len(self.end_s)}")
        part = 0
        for begin_s, end_s, parts in zip(event.begin_s, event.end_s, event.parts, strict=True):
            for i in range(part, part + parts):
                self._take_part(event.request[i], event.kind[i], event.tokens[i], event.made[i], begin_s, end_s)
            part += parts
            self.part_ends.append(len(self.request) + part)
        self.begin_s += event.begin_s
        self.end_s += event.end_s
        self.padding += event.padding
        self.waiting += event.waiting
        self.free_bytes += event.free_bytes
        self.request += event.request
        self.kind += event.kind
        self.tokens += event.tokens

    def _take_part(self, request: int, kind: int, tokens: int, made: int, begin_s: float, end_s: float) -> None:
        if kind not in (PREFILL, DECODE):
            return
        row = self.row(request)
        if row.start_s is None:
            row.start_s = begin_s
        if kind == PREFILL and not row.ids:  # one that lost its pages processes its prompt again
            row.prompt_tokens += tokens
        if made != NO_TOKEN:
            row.ids.append(made)
            row.token_s.append(end_s)

    def parts_of_steps(self) -> Iterator[list[tuple[int, int, int]]]:
        """Of each step, (request, kind, tokens) of its parts."""
        begin = 0
        for end in self.part_ends:
            yield [(self.request[i], self.kind[i], self.tokens[i]) for i in range(begin, end)]
            begin = end

    def pages_in_use(self) -> list[list[int]]:
        """Of each group of pages, how many of them requests hold in each step."""
        groups = len(self.pages.groups) if self.pages is not None else 0
        in_use, by_step, move = [0] * groups, [list[int]() for _ in range(groups)], 0
        for step in range(len(self.end_s)):
            while move < len(self.move_step) and self.move_step[move] <= step:
                in_use[self.move_group[move]] += 1 if self.move_request[move] >= 0 else -1
                move += 1
            for group in range(groups):
                by_step[group].append(in_use[group])
        return by_step

    def copy(self) -> "BatchSeries":
        copied = copy.copy(self)
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, list):
                setattr(copied, name, value[:])
        copied.requests = {  # one that has ended does not change any more
            number: row if row.end_s is not None else row.copy() for number, row in self.requests.items()
        }
        return copied


MAX_STEPS_PER_PULL = 2_000
MAX_MOVES_PER_PULL = 10_000
MAX_ENDS_PER_PULL = 100


class BatchColumns(msgspec.Struct, frozen=True):
    """One arm of many requests past a cursor: steps `first`..`end_step` with their parts, waits, moves of pages, and
    the requests that ended, with their texts.

    `part_ends` and `first_part` count from the beginning of the run.
    """

    first: int
    end_step: int = msgspec.field(name="n")
    begin_s: list[float] = msgspec.field(name="b")
    end_s: list[float] = msgspec.field(name="e")
    padding: list[int] = msgspec.field(name="pad")
    waiting: list[int] = msgspec.field(name="w")
    first_part: int = msgspec.field(name="pfirst")
    part_ends: list[int] = msgspec.field(name="pe")
    request: list[int] = msgspec.field(name="r")
    kind: list[int] = msgspec.field(name="k")
    tokens: list[int] = msgspec.field(name="tok")
    first_wait: int = msgspec.field(name="wfirst")
    end_wait: int = msgspec.field(name="wn")
    wait_s: list[float] = msgspec.field(name="wt")
    wait_request: list[int] = msgspec.field(name="wr")
    wait_reason: list[WaitReason] = msgspec.field(name="why")
    first_move: int = msgspec.field(name="mfirst")
    end_move: int = msgspec.field(name="mn")
    move_step: list[int] = msgspec.field(name="ms")
    move_group: list[int] = msgspec.field(name="mg")
    move_page: list[int] = msgspec.field(name="mp")
    move_request: list[int] = msgspec.field(name="mr")
    first_end: int = msgspec.field(name="efirst")
    end_end: int = msgspec.field(name="en")
    ended: list[int] = msgspec.field(name="er")
    ended_s: list[float] = msgspec.field(name="at")
    reasons: list[str] = msgspec.field(name="ewhy")
    texts: list[str] = msgspec.field(name="et")


def clamped(index: int, length: int) -> int:
    """An index of a viewer's cursor, brought back into a series of that length."""
    return min(max(index, 0), length)


def columns_past(batch: BatchSeries, cursor: Sequence[int]) -> tuple[BatchColumns, bool]:
    """What lies past a cursor of (steps, waits, moves, ends), and whether these columns reach the end of the series. An
    index outside the series is brought back into it."""
    lengths = (len(batch.end_s), len(batch.wait_s), len(batch.move_step), len(batch.end_request))
    step, wait, move, end = map(clamped, cursor, lengths)
    last = min(lengths[0], step + MAX_STEPS_PER_PULL)
    first_part, last_part = (batch.part_ends[n - 1] if n else 0 for n in (step, last))
    last_move, last_end = min(lengths[2], move + MAX_MOVES_PER_PULL), min(lengths[3], end + MAX_ENDS_PER_PULL)

    def cut(begin: int, end: int, *names: str) -> dict[str, Any]:
        return {name: getattr(batch, name)[begin:end] for name in names}

    ended = batch.end_request[end:last_end]
    columns = BatchColumns(
        first=step,
        end_step=last,
        **cut(step, last, "begin_s", "end_s", "padding", "waiting", "part_ends"),
        first_part=first_part,
        **cut(first_part, last_part, "request", "kind", "tokens"),
        first_wait=wait,
        end_wait=lengths[1],
        **cut(wait, lengths[1], "wait_s", "wait_request", "wait_reason"),
        first_move=move,
        end_move=last_move,
        **cut(move, last_move, "move_step", "move_group", "move_page", "move_request"),
        first_end=end,
        end_end=last_end,
        ended=ended,
        ended_s=[batch.requests[i].end_s or 0.0 for i in ended],
        reasons=[batch.requests[i].reason for i in ended],
        texts=[batch.requests[i].text for i in ended],
    )
    return columns, (last, lengths[1], last_move, last_end) == lengths
