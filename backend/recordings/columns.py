"""What the columns of a run that comes from elsewhere must be, so that everything that shows a run can rely on them."""

import itertools
import math
from collections.abc import Mapping, Sequence

import msgspec

from tokendyno.backend.messages import Event, PageMoves, Probed, Samples, Scored, Steps, Tokens

LONGEST_S = 1e7
"""About four months: no run takes longer."""


def require_columns(event: Event) -> None:
    """ValueError if columns differ in length or lack what is read of them, or if times do not follow one another."""
    match event:
        case Tokens():
            each = (event.latency_s, event.kv_sliding, event.kv_full, event.memory_bytes, event.ids)
            _equal(event.t_s, *each)
            _times(event.t_s)
            _durations(event.latency_s)
        case Samples():
            _equal(event.t_s, event.memory_bytes)
            _times(event.t_s)
        case Steps():
            _equal(event.begin_s, event.end_s, event.parts, event.padding, event.waiting)
            _equal(event.free_bytes or event.parts, event.parts)
            _equal(event.request, event.kind, event.tokens, event.made)
            _times(event.begin_s)
            _times(event.end_s)
            if min(event.parts, default=0) < 0 or sum(event.parts) != len(event.request):
                raise ValueError("parts are missing")
        case PageMoves():
            _equal(event.step, event.group, event.page, event.request)
        case Probed():
            _equal(event.ids, event.texts, event.logits)
            if len(event.ids) < 2:
                raise ValueError("there is no second token")
        case Scored():
            _equal(event.ids, event.nll_nats, event.top, event.kl_nats or event.ids)
        case _:
            pass


def require_moment(at_s: float) -> None:
    """ValueError unless these are seconds since a run began."""
    _durations([at_s])


def require_finite(value: object) -> None:
    """ValueError for a number, at any depth of a record, that the history's JSON cannot hold. Copies nothing: one
    column may hold millions of texts."""
    match value:
        case float() if not math.isfinite(value):
            raise ValueError("a number that no history can keep")
        case msgspec.Struct():
            for name in value.__struct_fields__:
                require_finite(getattr(value, name))
        case Mapping():
            for held in value.values():
                require_finite(held)
        case list() | tuple():
            for held in value:
                if not isinstance(held, str):
                    require_finite(held)
        case _:
            pass


def _equal(*columns: Sequence[object]) -> None:
    if len({len(column) for column in columns}) > 1:
        raise ValueError("columns differ in length")


def _times(values: Sequence[float]) -> None:
    _durations(values)
    if any(later < earlier for earlier, later in itertools.pairwise(values)):
        raise ValueError("times run backwards")


def _durations(values: Sequence[float]) -> None:
    if not all(math.isfinite(value) and 0 <= value <= LONGEST_S for value in values):
        raise ValueError("no time")
