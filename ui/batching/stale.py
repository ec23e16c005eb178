"""What was edited on the Batching page since the run that it shows."""

from collections.abc import Sequence
from dataclasses import replace

from tokendyno.backend.config import Request
from tokendyno.backend.errors import InputError
from tokendyno.backend.runs.run import Run
from tokendyno.ui.batching.request import read_request
from tokendyno.ui.components.stale_line import stale_value


def stale(run: Run | None, values: Sequence[object], local_paths: bool) -> str:
    """The value of the line for a run that is shown and the values of the controls."""
    if run is None or run.request.traffic is None:
        return ""
    try:
        return stale_value(run, changed(run.request, read_request(values, local_paths)))
    except InputError:
        return stale_value(run, None)


def changed(ran: Request, wanted: Request) -> list[str]:
    """What was edited since that run. The text of a label, and repeats, change nothing; requests that were given as a
    list are not shown again, so that nothing is said of them until another list is given."""
    was, now = ran.traffic, wanted.traffic
    assert was is not None and now is not None
    found = [] if ran.model == wanted.model else ["the model"]
    work = replace(ran.workload, repeats=wanted.workload.repeats)
    asked = [(one.requests, one.concurrent, one.pages) for one in (was, now)]
    unknown = was.shape is None and now.shape is not None
    if not unknown and (asked[0] != asked[1] or work != wanted.workload):
        found.append("the traffic")
    if was.limits != now.limits:
        found.append("the limits")
    choices = {arm.name: arm.choices for arm in ran.arms}
    return found + [f"arm {arm.name}" for arm in wanted.arms if choices.get(arm.name, arm.choices) != arm.choices]
