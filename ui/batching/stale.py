"""Says that the results on the page belong to other settings than those that are shown; the page dims them."""

from collections.abc import Sequence
from dataclasses import replace

from backend.config import Request
from backend.errors import InputError
from backend.runs.run import Run
from ui.batching.request import read_request


def stale(run: Run | None, values: Sequence[object], local_paths: bool) -> str:
    """The sentence; "" without a run of many requests, and while the page shows its settings."""
    if run is None or run.request.traffic is None:
        return ""
    try:
        parts = changed(run.request, read_request(values, local_paths))
    except InputError:
        return "These results are of the run before: what is set now cannot run yet."
    if not parts:
        return ""
    what = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    return f"You changed {what} since this run. Press Run for new results."


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
