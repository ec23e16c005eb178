"""A run whose scores become NaN or infinite fails, in every way of running."""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.sabotage.small_models import bert
from tests.support.changed_weights import changed_copy
from tests.support.local_worker import LocalWorker
from tests.support.worker import SENTENCE, job_of, plan_of, request, traffic_job
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.messages import Finished, Generate, Score, Started, Tokens
from tokendyno.backend.plan import BatchPlan
from tokendyno.backend.traffic.presets import drawn
from tokendyno.backend.traffic.requests import Draw
from tokendyno.backend.worker.errors import explain
from tokendyno.backend.worker.measure.finite import NotFinite
from tokendyno.backend.worker.runners.course import course_for

OWN = {"cache": "static", "loop": "own"}
WAYS: list[tuple[dict[str, str], float]] = [
    ({}, 0.0),
    ({}, 1.0),
    ({"cache": "static"}, 0.0),
    ({"shapes": "buckets"}, 0.0),
    (OWN, 0.0),
    (OWN, 1.0),
    ({"speculation": "prompt-lookup"}, 0.0),
]
NEW = 10


@pytest.fixture(scope="module")
def worker() -> LocalWorker:
    """The embedded model in float32, for all plans that load it so."""
    return LocalWorker(plan_of(dtype="float32").load)


def job(ways: dict[str, str], temperature: float = 0.0, batch_size: int = 1, **extra: Any) -> Generate:
    plan = plan_of(**{"dtype": "float32"} | ways)
    return Generate(plan, SENTENCE, 0, NEW, batch_size, temperature, 0, **{"ignore_eos": True, "warmup": False} | extra)


@contextmanager
def changed(module: Any, change: Callable[[int, Any], Any]) -> Iterator[list[int]]:
    """`change` gets the number of a call and what the module returned, and returns what it returns instead."""
    calls = [0]

    def hook(_: Any, __: Any, output: Any) -> Any:
        calls[0] += 1
        return change(calls[0] - 1, output)

    handle = module.register_forward_hook(hook)
    try:
        yield calls
    finally:
        handle.remove()


def once(number: int, value: float) -> Callable[[int, Any], Any]:
    """Everything is `value` in one call, and whole before and after it."""
    return lambda call, output: torch.full_like(output, value) if call == number else output


@pytest.mark.parametrize(("ways", "temperature"), WAYS)
def test_one_broken_step_fails_the_run(worker: LocalWorker, ways: dict[str, str], temperature: float) -> None:
    with changed(worker.model.model.model.norm, once(5, math.nan)) as calls, pytest.raises(NotFinite) as error:
        worker.run(job(ways, temperature))
    assert str(error.value) == "The model's outputs are not a number (NaN)."
    assert calls[0] > 6, "it was read when the run had ended"
    assert not any(isinstance(event, Finished) for event in worker.events)


@pytest.mark.parametrize(("ways", "temperature"), [({}, 0.0), (OWN, 1.0)])
def test_tokens_that_the_model_rules_out_are_no_fault(
    worker: LocalWorker, ways: dict[str, str], temperature: float
) -> None:
    def rule_out(call: int, logits: Any) -> Any:
        logits = logits.clone()
        logits[..., 1::2] = -math.inf
        return logits

    with changed(worker.model.model.lm_head, rule_out):
        assert worker.run(job(ways, temperature, prove=False)).reason == "length"
    ids = [token for event in worker.events if isinstance(event, Tokens) for token in event.ids]
    assert len(ids) == NEW and not any(token % 2 for token in ids)


@pytest.mark.parametrize(("ways", "temperature"), [({}, 1.0), (OWN, 0.0)])
def test_one_score_that_is_infinite_is_enough(worker: LocalWorker, ways: dict[str, str], temperature: float) -> None:
    def overflow(call: int, logits: Any) -> Any:
        if call == 3:
            logits = logits.clone()
            logits[..., 77] = math.inf
        return logits

    with changed(worker.model.model.lm_head, overflow), pytest.raises(NotFinite, match="are infinite"):
        worker.run(job(ways, temperature))


@pytest.mark.parametrize("ways", [{}, OWN])
def test_one_text_of_a_batch_is_enough(worker: LocalWorker, ways: dict[str, str]) -> None:
    def overflow(call: int, output: Any) -> Any:
        if call == 4:
            output = output.clone()
            output[1] = math.nan
        return output

    with changed(worker.model.model.model.norm, overflow), pytest.raises(NotFinite):
        worker.run(job(ways, batch_size=3))


def test_a_warm_up_that_breaks_ends_it_before_any_text(worker: LocalWorker) -> None:
    with changed(worker.model.model.model.norm, once(1, math.nan)), pytest.raises(NotFinite):
        worker.run(job({}, warmup=True))
    assert not any(isinstance(event, Started | Tokens) for event in worker.events)
    assert worker.run(job({}, warmup=True, prove=False)).reason == "length", "the worker is as good as before"


def test_a_run_that_was_stopped_is_stopped(worker: LocalWorker) -> None:
    stopped = threading.Event()

    def stop(call: int, output: Any) -> Any:
        if call == 4:
            stopped.set()
        return torch.full_like(output, math.nan)

    runner = course_for(worker.model, job({}).plan, worker.channel, stopped)
    worker.events.clear()
    with changed(worker.model.model.model.norm, stop):
        runner.run(job({}))
    assert isinstance(worker.events[-1], Finished) and worker.events[-1].reason == "cancelled"


def test_drafts_that_are_sampled_from_nan_are_explained(worker: LocalWorker) -> None:
    with changed(worker.model.model.model.norm, once(2, math.nan)), pytest.raises(RuntimeError) as error:
        worker.run(job({"speculation": "prompt-lookup"}, 1.0))
    sentence, advice, fatal = explain(error.value)
    assert "infinite or not a number (NaN)" in sentence
    assert "copy or download the weights again" in advice and not fatal


TEXT = " ".join([SENTENCE] * 3)


@pytest.mark.parametrize("ways", [{}, OWN])
def test_a_given_text_is_scored_by_finite_numbers_only(worker: LocalWorker, ways: dict[str, str]) -> None:
    plan = job(ways).plan
    runner = course_for(worker.model, plan, worker.channel)
    runner.score(Score(plan, TEXT, 9, 20))
    with (
        changed(worker.model.model.model.norm, lambda call, out: torch.full_like(out, math.nan)),
        pytest.raises(NotFinite),
    ):
        runner.score(Score(plan, TEXT, 9, 20))


# --- many requests --------------------------------------------------------------------------------

TRAFFIC = drawn(Draw(5, (5, 40), (6, 14)), 1, 3)


def served(worker: LocalWorker, ways: dict[str, str], **batch: Any) -> Finished:
    plan = plan_of("pocket", **{"dtype": "float32"} | ways)
    return worker.run(traffic_job(plan, TRAFFIC, BatchPlan(**{"page_tokens": 16} | batch)))


BATCHES: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({}, {"kind": "static"}),
    (OWN, {"kind": "static"}),
    ({}, {"kind": "continuous"}),
]


@pytest.mark.parametrize(("ways", "batch"), BATCHES)
def test_many_requests_fail_with_one_step(worker: LocalWorker, ways: dict[str, str], batch: dict[str, Any]) -> None:
    def overflow(call: int, output: Any) -> Any:
        """Of the last row, whose token is chosen from the last position, in a step of the first batch."""
        if call == 3:
            output = output.clone()
            output[-1, -1] = math.nan
        return output

    with changed(worker.model.model.model.norm, overflow), pytest.raises(NotFinite, match="not a number"):
        served(worker, ways, **batch)
    assert served(worker, ways, **batch).reason == "length"


# --- an encoder -----------------------------------------------------------------------------------


@pytest.mark.parametrize("element", [None, 17])
def test_a_pass_of_an_encoder_that_breaks_fails_the_run(element: int | None) -> None:
    plan = plan_of(bert())
    worker = LocalWorker(plan.load)
    passes = job_of(plan, max_new_tokens=NEW, prove=True)

    def overflow(call: int, output: Any) -> Any:
        """In the last layer, before its norm: in all elements of a position, or in one."""
        if call >= 5 and element is not None:
            output = output.clone()
            output[0, 3, element] = math.inf
        return output

    with changed(worker.model.model.encoder.layer[-1].output.dense, overflow):
        if element is None:
            assert worker.run(passes).reason == "length"
            return
        with pytest.raises(NotFinite, match="are not a number"):
            worker.run(passes)


# --- a run as its user sees it --------------------------------------------------------------------


def test_a_checkpoint_beyond_float16_fails_that_arm_and_says_what_to_do(warm_bench: Bench, tmp_path: Path) -> None:
    """All weights are finite in float16; the scores are not."""
    folder = changed_copy(tmp_path / "model", {"model.norm.weight": lambda weight: weight.mul_(3e4)})
    compared = request({"dtype": "bfloat16"}, {"dtype": "float16"}, model=str(folder))
    run = warm_bench.wait(warm_bench.submit(compared), 120)
    assert run.status == "failed"
    assert run.message.startswith("Arm B failed during ")
    assert "The model's outputs are not a number (NaN). float16 ends at 65,504" in run.message
    assert "use dtype=bfloat16" in run.message
    assert not run.snapshot().ledgers["B"]
