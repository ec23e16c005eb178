"""The parts of the Compare page that its handlers read and update."""

from typing import Any, NamedTuple

import gradio as gr

from backend.ablation.courses import Courses
from backend.engine.bench import Bench
from ui.compare.arm_column import ArmControls
from ui.compare.work_row import WorkRow
from ui.errors import Updates
from ui.run_page import RunPage
from ui.visitor import Buttons


class CoursePart(NamedTuple):
    """The panel of ablations, or that of sweeps, and the sentence above it about what was pressed there."""

    panel: gr.HTML
    message: gr.HTML


class Parts(RunPage):
    """What the page is made of. Its handlers are in classes by what they are about."""

    def __init__(
        self, bench: Bench, row: WorkRow, arms: list[ArmControls], same: gr.HTML, message: gr.HTML,
        older: gr.HTML, offered: gr.HTML, live: gr.HTML, codes: list[gr.Code], courses: Courses,
        worth: list[CoursePart],
    ) -> None:  # fmt: skip
        super().__init__(bench, message, live)
        self.arms, self.codes = arms, codes
        self.work, self.facts, self.will = row.work, row.facts, row.will
        self.run_button, self.measure_button, self.quality_button, self.stop_button = row[1:5]
        self.same, self.stale = same, older
        self.palette = offered
        self.courses, self.courses_shown = courses, worth
        self.worth, self.swept = (part.panel for part in worth)
        self.inputs: list[Any] = [*self.work, *(axis for arm in arms for axis in arm.axes)]
        self.asked: list[Any] = [*self.inputs, *(arm.preset for arm in arms)]

    def buttons(self, state: Buttons) -> Updates:
        """Run, Measure, Quality and Stop."""
        return {
            self.run_button: gr.update(interactive=state[0]),
            self.measure_button: gr.update(interactive=state[0]),
            self.quality_button: gr.update(interactive=state[0]),
            self.stop_button: gr.update(interactive=state[1]),
        }
