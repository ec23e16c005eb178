"""A worker without a process: loads a model and runs commands in this thread, and keeps their events."""

from collections.abc import Callable
from typing import Any

from tokendyno.backend.messages import Event, Finished, Generate
from tokendyno.backend.plan import LoadPlan


class LocalWorker:
    """One loaded model. `act` is called with each event; `runner` carried out the latest run."""

    def __init__(self, plan: LoadPlan) -> None:
        from tokendyno.backend.worker.channel import Channel
        from tokendyno.backend.worker.load.loader import load

        self.events: list[Event] = []
        self.act: Callable[[Event], object] = lambda event: None
        self.channel = Channel(self._take)
        self.model = load(plan, self.channel)
        self.runner: Any = None

    def _take(self, event: Event) -> None:
        self.events.append(event)
        self.act(event)

    def run(self, job: Generate) -> Finished:
        """Forget earlier events, run with the runner that the plan needs, and return the last event."""
        from tokendyno.backend.worker.runners.course import course_for

        self.events.clear()
        self.runner = course_for(self.model, job.plan, self.channel, last=self.runner, many=job.traffic is not None)
        self.runner.run(job)
        finished = self.events[-1]
        assert isinstance(finished, Finished)
        return finished
