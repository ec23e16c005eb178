"""What pages that start runs have in common: handlers of their live panel, and what decides their first controls."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import NO_RUNS
from tokendyno.backend.models import DEFAULT_MODEL, ModelFacts, resolve
from tokendyno.backend.optimizations.base import Optimization
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.sentences import origin_sentence
from tokendyno.ui.compare.request import what_pairs
from tokendyno.ui.components.axis_values import edited
from tokendyno.ui.components.stale_line import unchanged
from tokendyno.ui.errors import Updates
from tokendyno.ui.live.panel import RUN_ID
from tokendyno.ui.visitor import BUSY, REFUSED, Buttons, buttons_of, visitor_of


class RunPage(ABC):
    """Handlers of one page. They hold no state: all of it is in the controls and in the run log.

    message  the sentence about what was typed or pressed last
    """

    def __init__(self, bench: Bench, message: gr.HTML, live: gr.HTML) -> None:
        self.bench, self.message, self.live = bench, message, live

    @abstractmethod
    def check(self, shown: Any, *values: Any) -> Updates:
        """What the page says of the present values of its controls. `shown`: id of a run."""

    @abstractmethod
    def buttons(self, state: Buttons) -> Updates:
        """Which of the page's buttons can be pressed."""

    def pressable(self, state: Buttons) -> Buttons:
        """The same without Run, where nothing is run."""
        return state[0] and self.bench.limits.runs, state[1]

    def what_run_does(self, request: Request) -> str:
        """What a press of Run does, or why there is none."""
        return f"{what_pairs(request)}." if self.bench.limits.runs else NO_RUNS

    def check_on_change(self, shown: Any, said: object, *values: Any) -> Updates:
        """The same when a control was changed. It takes a sentence away only if that was there when the values were
        sent (`said`): what a press was answered meanwhile, to newer values, stays."""
        updates = self.check(shown, *values)
        stays = not said and not updates.get(self.message)
        return {part: update for part, update in updates.items() if not (stays and part is self.message)}

    def check_first(self, shown: Any, *values: Any) -> Updates:
        """The same when the page was opened; the message of whatever was opened stays."""
        updates = self.check(shown, *values)
        return updates if updates.get(self.message) else {k: v for k, v in updates.items() if k is not self.message}

    def start(self, request: gr.Request, shown: Any, asked: Callable[[], Request]) -> Updates:
        """Queue a run and show it."""
        if buttons_of(self.known(shown), request) == BUSY:  # before the buttons were greyed
            return {}
        run_id = self.bench.submit(asked(), visitor_of(request))
        return {self.live: run_id, self.message: "", **self.buttons(BUSY)}

    def stop(self, request: gr.Request, run_id: Any) -> Updates:
        """Stop was pressed."""
        stopped = isinstance(run_id, str) and self.bench.cancel(run_id, visitor_of(request))
        return {self.message: "" if stopped else REFUSED}

    def finished(self, request: gr.Request, run_id: Any) -> Updates:
        """The panel has shown the end of its run."""
        return self.buttons(buttons_of(self.known(run_id), request))

    def recorded(self, shown: Any, stale: str) -> bool:
        """Whether a run is shown, with its settings, that was made elsewhere. `stale`: the value of the stale line."""
        run = self.known(shown)
        return run is not None and bool(origin_sentence(run.created)) and unchanged(stale)

    def known(self, run_id: Any) -> Run | None:
        """The run of that id, which may be anything."""
        return self.bench.runs.get(run_id) if isinstance(run_id, str) and RUN_ID.fullmatch(run_id) else None


def fixes(axes: Sequence[Optimization], controls: Sequence[gr.Dropdown]) -> Callable[..., Updates]:
    """Handler: a verdict's fix was pressed, for the arm with these controls. InputError if the event has none."""

    def apply(event: gr.EventData, *values: Any) -> Updates:
        asked = event.choices if isinstance(event._data, dict) and "choices" in event._data else None
        if not isinstance(asked, dict) or not all(isinstance(v, str) for v in asked.values()):
            raise InputError("This fix cannot be read. Reload the page.")
        return edited(axes, controls, values, asked)

    return apply


def first_facts() -> ModelFacts | None:
    """Facts of the default model, which decide what is folded at first; None if it cannot be read."""
    try:
        return resolve(DEFAULT_MODEL)
    except InputError:
        return None
