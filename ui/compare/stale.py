"""What was edited on the Compare page since the run that it shows."""

from collections.abc import Sequence
from dataclasses import replace

from backend.arms.parse import make_config
from backend.config import ArmRequest, Request
from backend.runs.run import Run
from ui.compare.request import read_request
from ui.components.stale_line import stale_value


def stale(run: Run | None, values: Sequence[object]) -> str:
    """The value of the line for a run that is shown and the values of the controls."""
    if run is None:
        return ""
    return stale_value(run, lambda: read_request(values, need_prompt=False), changed)


def changed(ran: Request, wanted: Request) -> list[str]:
    """What was edited since that run. Repeats do not count: Measure asks for more of them."""
    found = [] if ran.model == wanted.model else ["the model"]
    if ran.quality is not None:  # its texts are no workload that the page shows
        return found + _changed_arms(ran, wanted)
    was, now = ran.workload, replace(wanted.workload, repeats=ran.workload.repeats)
    if was.prompt != now.prompt:
        found.append("the prompt")
    if replace(was, prompt="?") != replace(now, prompt="?"):
        found.append("the workload")
    return found + _changed_arms(ran, wanted)


def _changed_arms(ran: Request, wanted: Request) -> list[str]:
    arms = {arm.name: _chosen(arm) for arm in ran.arms}
    return [f"arm {arm.name}" for arm in wanted.arms if arms.get(arm.name, _chosen(arm)) != _chosen(arm)]


def _chosen(arm: ArmRequest) -> tuple[tuple[str, str], ...]:
    """The choices without defaults."""
    return make_config("", arm.choices).choices
