"""What the Compare page shows when it is opened: by its address a run, an ablation or a sweep, else the newest."""

import gradio as gr

from backend.ablation.kinds import Ablation, Sweep
from backend.optimizations import prompt_axes
from backend.runs.run import Run
from ui.address import asks_for_model, read_address
from ui.compare.parts import Parts
from ui.compare.request import CUSTOM, choice_values
from ui.components.axis_values import all_known
from ui.errors import Updates
from ui.live.panel import RUN_ID
from ui.visitor import buttons_of, visitor_of


class Opening(Parts):
    """The page that comes back, with its settings."""

    def attach(self, request: gr.Request) -> Updates:
        """The page was opened: show the run of `?run=`, the ablation of `?worth=` or the sweep of `?sweep=`, else this
        visitor's newest, with its settings. A model that the address names stays, and an address of this page that
        names a model and no run asks for that model alone."""
        asked = read_address(request).model
        course_id = request.query_params.get("worth") or request.query_params.get("sweep") or ""
        owner = visitor_of(request).owner
        newest = {self.worth: self.courses.newest(owner, Ablation), self.swept: self.courses.newest(owner, Sweep)}
        found = newest | (self.opened_course(course_id) if course_id else self.opened_run(request))
        return found | ({self.work.model: asked} if asked else {})

    def opened_course(self, course_id: str) -> Updates:
        """An ablation with the arms between which it goes, or a sweep with its arm in both."""
        course = self.courses.get(course_id)
        if course is None:
            return {self.live: "", self.message: f"There is no ablation or sweep {course_id[:64]!r} here."}
        heading, sweeps = course.heading, isinstance(course, Sweep)
        updates = self.work.values(heading.model, heading.workload)
        whole = heading.base if sweeps else {**heading.base, **dict(heading.changes)}
        for arm, choices in zip(self.arms, (heading.base, whole), strict=True):
            if all_known(prompt_axes(), choices):
                updates |= zip(arm.axes, choice_values(choices), strict=True)
                updates[arm.preset] = CUSTOM
        return updates | {self.live: "", self.swept if sweeps else self.worth: course.id}

    def opened_run(self, request: gr.Request) -> Updates:
        """The run that is shown at first, with its settings."""
        wanted = request.query_params.get("run") or ""
        if wanted:
            run = self.bench.runs.get(wanted) if RUN_ID.fullmatch(wanted) else None
            if run is None:
                return {self.live: "", self.message: f"There is no run {wanted[:64]!r} here. Press Run to start one."}
            if run.request.traffic is not None:  # the Batching page shows it
                return {self.live: ""}
        else:
            named = asks_for_model(request, "compare")
            newest = None if named else self.bench.runs.newest(visitor_of(request).owner)
            run = self.bench.runs.get(newest) if newest else None
            if run is None or run.request.traffic is not None:
                return {self.live: ""}
            if run.request.trial and self.courses.get(run.request.trial) is not None:
                return self.opened_course(run.request.trial)
        return {self.live: run.id, **self.buttons(buttons_of(run, request)), **self.settings(run)}

    def settings(self, run: Run) -> Updates:
        """Updates that show the settings of a run; choices that no longer exist are left alone."""
        reads = run.request.quality is not None
        updates = self.work.values(run.request.model, run.request.workload) if not reads else {}
        updates[self.work.model] = run.request.model
        for arm, asked in zip(self.arms, run.request.arms, strict=False):
            if all_known(prompt_axes(), asked.choices):
                updates |= zip(arm.axes, choice_values(asked.choices), strict=True)
                updates[arm.preset] = asked.preset or CUSTOM
        return updates
