"""Every axis's proof, on real tiny models: true for what is on, false for what is off."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.sabotage.small_models import mistral
from tests.support.local_worker import LocalWorker
from tests.support.worker import SENTENCE, plan_of
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.evidence import Finding
from tokendyno.backend.hardware import detect
from tokendyno.backend.messages import Event, Finished, Generate, Progress, Started
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.plan import Plan
from tokendyno.backend.worker.prove.observation import Observation

torch = pytest.importorskip("torch")


@pytest.fixture
def workers() -> Iterator[dict[str, Any]]:
    """Workers by load key, so that one test's arms share what a worker would share."""
    yield {}
    torch._dynamo.reset()


def run(
    workers: dict[str, Any], model: str, act: Any = None, length: int = 24, warmup: bool = False, **choices: str
) -> tuple[Plan, Any]:
    """Do in this process what a worker does; returns the plan and the recorder of its events."""
    plan = check(make_config(model, choices), resolve(model), detect(), Workload(prompt=SENTENCE)).plan
    if plan.load_key not in workers:
        workers[plan.load_key] = LocalWorker(plan.load)
    worker = workers[plan.load_key]
    worker.act = act or (lambda event: None)
    worker.run(Generate(plan, SENTENCE, 8, length, 1, 0.0, 0, ignore_eos=True, warmup=warmup))
    return plan, worker


def found(worker: Any) -> dict[str, Finding]:
    (finished,) = (event for event in worker.events if isinstance(event, Finished))
    return {finding.axis: finding for finding in finished.findings}


def test_sdpa_on_a_model_with_sinks_is_found_to_be_eager(workers: dict[str, Any]) -> None:
    _, worker = run(workers, "pocket", attention="sdpa")
    assert found(worker)["attention"].effective == "eager"


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_a_compiled_run_past_the_window_compiles_nothing_while_it_is_measured(workers: dict[str, Any]) -> None:
    """Its warm-up went past the window of 16, in a phase of its own called compile."""
    from torch._dynamo.utils import counters

    graphs: dict[str, int] = {}

    def look(event: Event) -> None:
        if isinstance(event, Started | Finished):
            graphs[type(event).__name__] = counters["stats"]["unique_graphs"]

    _, worker = run(workers, mistral(sliding_window=16), look, 40, True, cache="static", compile="default")
    assert graphs["Started"] == graphs["Finished"] > 0
    phases = [p.phase for p in worker.events if isinstance(p, Progress) and p.state == "begin"]
    assert phases == ["compile", "warmup", "run", "prove"]


def test_a_probe_that_fails_is_told_as_unknown_and_the_others_are_asked_all_the_same() -> None:
    from tokendyno.backend.worker.witness import find_all

    findings = find_all(Observation(object(), None, plan_of()))
    assert [f.axis for f in findings] == [axis.name for axis in all_axes()]
    unknown = {f.axis: f.proof for f in findings if f.effective == "unknown"}
    assert {"dtype", "attention"} <= set(unknown) and all("probe failed" in proof for proof in unknown.values())
    assert {f.axis: f.effective for f in findings}["compile"] == "off", "it was asked all the same"
