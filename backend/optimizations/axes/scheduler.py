"""Who comes first when a step of continuous batching cannot take everybody."""

from tokendyno.backend.optimizations.base import Choice, ManyRequests
from tokendyno.backend.optimizations.conditions import only_continuous


class Scheduler(ManyRequests):
    name = "scheduler"
    title = "Scheduler"
    summary = "Who comes first when a step of continuous batching cannot take everybody."
    default = "fifo"
    sets = "batch.scheduler"
    in_pages = True
    order = 68
    aliases = {"": ("scheduler_type",)}
    choices = (
        Choice("fifo", "first in, first out", "Requests that decode come first, so that their tokens are not delayed."),
        Choice(
            "prefill_first",
            "prefill first",
            "Prompts that were begun come first, so that first tokens come sooner.",
            (only_continuous("this scheduler"),),
        ),
    )


AXIS = Scheduler()
