"""Handlers of the Compare page that start and stop something: runs, readings of texts, ablations, sweeps."""

from collections.abc import Callable
from typing import Any

import gradio as gr
import msgspec

from backend.config import Request
from backend.errors import InputError
from ui.compare.parts import CoursePart, Parts
from ui.compare.quality import quality_request
from ui.compare.request import ARMS, measured, read_request
from ui.errors import Updates
from ui.visitor import BUSY, REFUSED, visitor_of
from ui.worth.panel import Asked


class RunHandlers(Parts):
    """What is begun, stopped and gone on with. `RunPage.stop` stops a run. `shown`: id of a run."""

    def run(self, request: gr.Request, shown: Any, *values: Any) -> Updates:
        """Run was pressed."""
        return self.start(request, shown, lambda: read_request(values))

    def measure(self, request: gr.Request, shown: Any, *values: Any) -> Updates:
        """Measure was pressed: the arms repeated often enough for an interval, or as Repeats says."""
        return self.start(request, shown, lambda: measured(read_request(values)))

    def read(self, request: gr.Request, shown: Any, *values: Any) -> Updates:
        """Quality was pressed: both arms read the same texts."""
        return self.start(
            request, shown, lambda: quality_request(read_request(values, need_prompt=False), self.known(shown))
        )

    def ablate(self, request: gr.Request, *values: Any) -> Updates:
        """What the arms differ in is to be measured choice by choice."""
        course = self.courses.begin(read_request(values), visitor_of(request))
        return {self.worth: course.id, self.courses_shown[0].message: ""}

    def sweep(self, event: gr.EventData, request: gr.Request, *values: Any) -> Updates:
        """One arm is to be measured over sizes and choices."""
        try:
            wanted = msgspec.convert(event._data, Asked)
            at = ARMS.index(wanted.arm)
        except (msgspec.ValidationError, ValueError) as error:
            raise InputError("What is to be swept cannot be read. Reload the page.") from error
        asked = read_request(values)
        asked = msgspec.structs.replace(asked, arms=[asked.arms[at]])
        course = self.courses.begin_sweep(asked, wanted.values(), wanted.quality, visitor_of(request))
        return {self.swept: course.id, self.courses_shown[1].message: ""}

    def halt(self, part: CoursePart) -> Any:
        """Handler: Stop of an ablation or a sweep was pressed."""

        def stop(request: gr.Request, course_id: Any) -> Updates:
            stopped = isinstance(course_id, str) and self.courses.stop(course_id, visitor_of(request))
            return {part.message: "" if stopped else REFUSED}

        return stop

    def go_on(self, part: CoursePart) -> Any:
        """Handler: what was stopped goes on, in that panel."""

        def again(request: gr.Request, course_id: Any) -> Updates:
            course = self.courses.again(course_id if isinstance(course_id, str) else "", visitor_of(request))
            return {part.panel: course.id, part.message: ""}

        return again

    def start(self, request: gr.Request, shown: Any, asked: Callable[[], Request]) -> Updates:
        """Queue a run and show it."""
        if self.pressed_twice(shown, request):
            return {}
        run_id = self.bench.submit(asked(), visitor_of(request))
        return {self.live: run_id, self.message: "", **self.buttons(BUSY)}
