"""Handlers of the Compare page's arms: what is to be said of their choices, presets, fixes, and the palette."""

from typing import Any

import gradio as gr
import msgspec

from backend import hardware
from backend.errors import InputError
from backend.optimizations import prompt_axes
from ui.compare.arm_column import ArmControls
from ui.compare.code import code_text, named_code, no_code
from ui.compare.fold import folded
from ui.compare.palette import Taken
from ui.compare.palette import entries as offers
from ui.compare.parts import Parts
from ui.compare.request import (
    ARMS,
    CUSTOM,
    choice_values,
    matching_preset,
    preset_choices,
    read_arms,
    read_choices,
    read_request,
    what_runs,
)
from ui.compare.stale import stale
from ui.compare.unsupported import titles
from ui.compare.verdicts import NOT_RECORDED_HERE, describe, unchecked
from ui.components.axis_values import edited
from ui.components.summary import NOT_HERE, model_line
from ui.errors import Updates
from ui.run_page import fixing_choices

SAME = "A and B are identical: any difference between them is noise."


class ArmHandlers(Parts):
    """What is chosen for the arms."""

    def check(self, shown: Any, *values: Any) -> Updates:
        """Verdicts, facts, presets and scripts for the present values of the controls. `shown`: id of a run."""
        older = stale(self.known(shown), values)
        updates: Updates = {self.stale: older}
        recorded = self.recorded(shown, older)
        chosen = read_arms(values[len(self.work) :])
        for arm, found in zip(self.arms, chosen, strict=True):
            updates[arm.preset] = found.preset or matching_preset(found.choices)
        updates[self.same] = SAME if chosen[0].choices == chosen[1].choices else ""
        try:
            request = read_request(values, need_prompt=False)
            updates[self.will] = what_runs(request.workload)
            facts = self.bench.facts(request.model)
            lacking = self.bench.obstacle(facts)
            updates[self.facts] = model_line(facts, lacking)
            machine = hardware.detect()
            for arm, found in zip(self.arms, chosen, strict=True):
                updates[arm.preset] = matching_preset(found.choices, found.preset, facts, machine)
            results = self.bench.check(request)
            if _complete(values):  # else what Run said of the missing prompt stays
                updates[self.message] = ""
            for arm, asked, code, result in zip(self.arms, chosen, self.codes, results.values(), strict=True):
                updates[arm.fold] = folded(arm.name.lower(), result.requested, facts)
                shown_result = result.refused(NOT_HERE if lacking else "")
                updates[arm.verdicts] = describe(asked, updates[arm.preset], shown_result, recorded)
                text = code_text(result, facts, lambda: read_request(values), self.bench.local_paths)
                updates[code] = named_code(request.model, asked, text)
        except InputError as error:
            elsewhere = f"{NOT_RECORDED_HERE} {error}" if recorded else ""
            updates |= {self.message: "" if recorded else str(error), self.facts: elsewhere}
            updates |= {arm.verdicts: unchecked(asked) for arm, asked in zip(self.arms, chosen, strict=True)}
            updates |= {code: no_code(str(error)) for code in self.codes}
        return updates

    def check_chosen(self, preset: object, shown: Any, said: object, *values: Any) -> Updates:
        """The same when a preset was chosen: it may come to what was set before, and only its notes are new."""
        return {} if preset == CUSTOM else self.check_on_change(shown, said, *values)

    def show_unsupported(self, model: object) -> Updates:
        """Another model was chosen: mark what it cannot use here. Of an unknown name `check` says so."""
        try:
            facts = self.bench.facts(str(model))
        except InputError:
            return {}
        entries = titles(facts, hardware.detect())
        updates: Updates = {self.palette: offers(facts)}
        for arm in self.arms:
            updates[arm.preset] = gr.update(choices=[*entries.presets, (CUSTOM, CUSTOM)])
            updates |= {axis: gr.update(choices=pairs) for axis, pairs in zip(arm.axes, entries.choices, strict=True)}
        return updates

    def choose_preset(self, arm: ArmControls) -> Any:
        """Handler: an arm's preset was chosen. It leaves alone what need not change, since the user may have changed
        that by the time this is answered."""

        def choose(name: str, model: object, *values: object) -> Updates:
            if name == CUSTOM:
                return {}
            try:
                choices = preset_choices(name, self.bench.facts(str(model)), hardware.detect())
            except InputError:  # `check` says so
                choices = preset_choices(name)
            wanted = zip(arm.axes, choice_values(choices), values, strict=True)
            return {axis: value for axis, value, held in wanted if value != held}

        return choose

    def fix(self, arm: ArmControls) -> Any:
        """Handler: a verdict's fix was pressed."""

        def apply(event: gr.EventData, *values: Any) -> Updates:
            return edited(prompt_axes(), arm.axes, values, fixing_choices(event))

        return apply

    def copy(self, arm: ArmControls) -> Any:
        """Handler: "A and one more" was pressed. The palette opens in the browser."""
        return lambda *values: dict(zip(arm.axes, choice_values(read_choices(values)), strict=True))

    def take(self, event: gr.EventData, *values: Any) -> Updates:
        """An entry of the palette was taken."""
        try:
            taken = msgspec.convert(event._data, Taken)
            at = ARMS.index(taken.arm)
        except (msgspec.ValidationError, ValueError) as error:
            raise InputError("This entry cannot be read. Reload the page.") from error
        width = len(self.arms[at].axes)
        axes, before = prompt_axes(), values[at * width : (at + 1) * width]
        asked = {axis.name: axis.default for axis in axes} | taken.choices if taken.whole else taken.choices
        return edited(axes, self.arms[at].axes, before, asked)


def _complete(values: tuple[Any, ...]) -> bool:
    """Whether these values could be run."""
    try:
        read_request(values)
    except InputError:
        return False
    return True
