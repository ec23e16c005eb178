"""What a page shows while transformers counts an architecture."""

from collections.abc import Callable
from typing import Any

import gradio as gr

from tokendyno.backend.engine.allowed import check_model
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import must_count
from tokendyno.backend.models.counting import progress
from tokendyno.backend.views.waits import duration
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.errors import Updates

COUNTING = (
    "transformers counts this architecture, without its weights: this takes seconds, on a busy machine minutes, and is "
    "remembered."
)
TICK_S = 5.0


def wire_counting(
    model: Any,
    message: gr.HTML,
    bench: Bench,
    safe: Callable[[Callable[..., Updates]], Callable[..., Updates]],
) -> None:
    """Say so before the facts of another model take a while, and how long that has taken."""
    timer = gr.Timer(TICK_S, active=False)

    def announce(chosen: object) -> Updates:
        return {message: COUNTING, timer: gr.Timer(active=True)} if slow_to_resolve(chosen, bench) else {}

    def count_on(chosen: object, said: object) -> Updates:
        return next_sentence(chosen, said, bench, message, timer)

    model.change(safe(announce), model, [message, timer], **QUIET)
    timer.tick(safe(count_on), [model, message], [message, timer], **QUIET)


def next_sentence(chosen: object, said: object, bench: Bench, message: gr.HTML, timer: gr.Timer) -> Updates:
    """What takes the place of the sentence `said` while the model is counted; the timer ends with that."""
    if not isinstance(said, str) or not said.startswith(COUNTING):  # answered
        return {timer: gr.Timer(active=False)}
    if not slow_to_resolve(chosen, bench):
        return {message: "", timer: gr.Timer(active=False)}
    now = progress()
    return {message: f"{COUNTING} {duration(now.spent_s)} so far."} if now else {}


def slow_to_resolve(model: object, bench: Bench) -> bool:
    """Whether the facts of a model, named by whatever is in the control, take a while."""
    if not isinstance(model, str):
        return False
    try:
        check_model(model, bench.limits)
    except InputError:  # `check` says so
        return False
    return must_count(model, bench.models_dir, local_paths=bench.local_paths)
