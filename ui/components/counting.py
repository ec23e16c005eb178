"""What a page shows while transformers counts an architecture."""

from collections.abc import Callable
from typing import Any

import gradio as gr

from tokendyno.backend.engine.allowed import check_model
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import must_count
from tokendyno.ui.components.events import QUIET
from tokendyno.ui.errors import Updates

COUNTING = (
    "transformers counts this architecture, without its weights: this takes seconds, on a busy machine minutes, and is "
    "remembered."
)


def wire_counting(
    model: Any, message: gr.HTML, bench: Bench, safe: Callable[[Callable[..., Updates]], Callable[..., Updates]]
) -> None:
    """Say so before the facts of another model take a while; the answer takes the sentence away."""

    def announce(name: object) -> Updates:
        return {message: COUNTING} if slow_to_resolve(name, bench) else {}

    model.change(safe(announce), model, message, **QUIET)


def slow_to_resolve(model: object, bench: Bench) -> bool:
    """Whether the facts of a model, named by whatever is in the control, take a while."""
    if not isinstance(model, str):
        return False
    try:
        check_model(model, bench.limits)
    except InputError:  # `check` says so
        return False
    return must_count(model, bench.models_dir, local_paths=bench.local_paths)
