"""In which order static batches are formed from the requests that have arrived."""

from tokendyno.backend.optimizations.base import Choice, ManyRequests, blocked, note
from tokendyno.backend.optimizations.conditions import batches_statically

_STATIC = "backend/worker/runners/static_batch.py"
_SORTED = (
    blocked(
        lambda s: not batches_statically(s),
        "Only static batches are formed in an order; continuous batching takes requests as they arrive.",
        _STATIC,
        (("batching", "static"),),
    ),
    note(
        lambda s: True,
        "Sorting needs to know how long each output will be, which a server does not: here every request generates all "
        "the tokens that it allows. A request with a long output may wait until the end.",
        _STATIC,
    ),
)


class BatchOrder(ManyRequests):
    name = "batch_order"
    title = "Order of batches"
    summary = "The order in which static batches are formed from the requests that have arrived."
    default = "arrival"
    sets = "batch.order"
    order = 62
    choices = (
        Choice("arrival", "arrival", "First come, first served."),
        Choice("sorted", "sorted by length", "Short outputs first, so that rows of a batch end together.", _SORTED),
    )


AXIS = BatchOrder()
