"""What is marked while tokens are measured, and what is left alone."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from torch._dynamo.callback import CallbackTrigger, callback_handler

from tokendyno.backend.messages import Annotation
from tokendyno.backend.worker.measure import annotations as module
from tokendyno.backend.worker.measure.annotations import Annotations, Window

TIMES = [0.1 + 0.01 * i for i in range(50)]


def kinds(annotations: list[Annotation]) -> list[tuple[str, int]]:
    return [(mark.kind, mark.token) for mark in annotations]


def running(generated: int = 5, window: Window | None = None) -> Annotations:
    return Annotations(lambda: generated, window)


@pytest.mark.parametrize(
    ("prompt", "slots", "token"),
    [(20, 127, 107), (20, 128, 108), (126, 127, 1), (127, 127, None), (200, 127, None), (20, 200, None)],
)
def test_a_window_is_marked_at_the_token_that_fills_it_unless_the_prompt_did_or_the_run_ends_before(
    prompt: int, slots: int, token: int | None
) -> None:
    times = [0.01 * i for i in range(140)]
    with running(window=Window(prompt, slots)) as marks:
        annotations = marks.take(times[:100]) + marks.take(times) + marks.take(times)
    assert kinds(annotations) == ([] if token is None else [("window", token)])
    assert all(f"{slots} tokens" in mark.text and mark.t_s == times[mark.token] for mark in annotations)


def test_a_long_collection_is_marked_at_the_token_in_the_making_and_a_short_one_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, generated = [100.0], [3]
    monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    with Annotations(lambda: generated[0]) as marks:
        for token, pause_s in ((3, 0.004), (7, 0.0009), (9, 0.0015)):
            generated[0] = token
            marks._collects("start", {"generation": 2})
            clock[0] += pause_s
            marks._collects("stop", {"generation": 2})
        assert kinds(marks.take(TIMES[:3])) == [], "the latency of the token is not known yet"
        slow = [*TIMES[:9], *(t + 1 for t in TIMES[9:])]  # token 9 took over a second: 1.5 ms explain nothing of it
        (annotation,) = marks.take(slow)
    assert (annotation.kind, annotation.token, round(annotation.seconds, 6)) == (
        "gc",
        3,
        0.004,
    ) and "generation 2" in annotation.text


def record(compile_id: str, **kwargs: Any) -> Any:
    fields: dict[str, Any] = {
        "is_runtime": False,
        "fail_type": None,
        "fail_reason": None,
        "recompile_reason": None,
        "cudagraph_skip_reason": None,
        "co_name": "forward",
    }
    return SimpleNamespace(compile_id=compile_id, **fields | kwargs)


def test_a_recompile_bears_its_guard_its_seconds_and_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dynamo's own callbacks; its record of the compilation is there a moment after."""
    records = [record("0/0")]
    monkeypatch.setattr(module, "get_compilation_metrics", lambda: list(records))
    with running(generated=12) as marks:
        with callback_handler.install_callbacks(CallbackTrigger.DYNAMO, "0/1"):
            time.sleep(0.01)
        assert marks.take(TIMES) == []
        records.append(record("0/1", recompile_reason="0/0: L['x'].size()[0] == 1  # in f\nUser stack trace: /home/me"))
        (annotation,) = marks.take(TIMES)
    assert (annotation.kind, annotation.token) == ("recompile", 12) and annotation.seconds >= 0.01
    assert annotation.text.endswith("L['x'].size()[0] == 1")
    assert marks.take(TIMES) == []
    with callback_handler.install_callbacks(CallbackTrigger.DYNAMO, "0/2"):
        pass
    assert marks._compiled == {}, "it looks no longer"


def test_a_recorded_cuda_graph_and_a_skip_that_torch_does_not_explain(monkeypatch: pytest.MonkeyPatch) -> None:
    skips = [2]
    monkeypatch.setattr(module, "_skips", lambda: skips[0])
    with running(generated=4) as marks:
        with callback_handler.install_callbacks(CallbackTrigger.CUDAGRAPH_RECORDING, "0/0"):
            pass
        skips[0] = 3
        annotations = marks.take(TIMES)
    assert kinds(annotations) == [("compile", 4), ("graph_skip", 4)]
    assert "CUDA graph was recorded" in annotations[0].text and "torch gave no reason" in annotations[1].text


def test_memory_taken_from_the_device_is_put_on_the_slowest_token_since_the_last_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    segments = [7]
    monkeypatch.setattr(Annotations, "_segments", lambda self: segments[0])
    marks = Annotations(lambda: 20, cuda=True)
    assert marks.take(TIMES[:10]) == []
    segments[0] = 9
    slow = [*TIMES[:14], *(t + 0.02 for t in TIMES[14:])]
    (annotation,) = marks.take(slow[:20])
    assert (annotation.kind, annotation.token) == ("cache", 14) and "between tokens 10 and 19" in annotation.text
    assert marks.take(slow[:30]) == []


def test_of_many_of_a_kind_the_first_are_shown_and_others_still_marked() -> None:
    with running() as marks:
        for _ in range(module.MAX_OF_A_KIND + 7):
            marks.add("throttle", 0.1, "slower")
        marks.add("foreign", 0.1, "a stranger")
    annotations = marks.take([])
    assert len(annotations) == module.MAX_OF_A_KIND + 1
    assert [mark.text for mark in annotations if "not shown" in mark.text] == [annotations[-2].text]
