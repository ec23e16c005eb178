"""The log of many requests is sent while it grows: everything once, in order, an end after the last step."""

import time
from typing import Any

from tokendyno.backend.messages import DECODE, Event, RequestEnds, Steps, Waits
from tokendyno.backend.worker.channel import Channel, repeating
from tokendyno.backend.worker.measure.steps import Part, StepLog, StepRow, StepStreamer


class Nothing:
    """No samples, no annotations, and a tokenizer that joins numbers."""

    def take(self, times_s: Any = None) -> list[Any]:
        return []

    def take_annotations(self) -> list[Any]:
        return []

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return " ".join(map(str, ids))


def test_a_log_is_sent_while_it_grows() -> None:
    sent: list[Event] = []
    log, nothing = StepLog([0.0] * 40), Nothing()
    streamer = StepStreamer(log, nothing, nothing, Channel(sent.append), nothing)  # type: ignore[arg-type]
    log.start()
    with repeating(streamer.flush, 0.001, "streamer"):
        for request in range(40):
            for token in range(5):
                now_s = log.now_s()
                log.add(StepRow(now_s, now_s, [Part(request, DECODE, 1, token)], 0, 0))
                if token % 3 == 0:
                    time.sleep(0.0005)
            log.end(request, log.now_s(), "length")
    streamer.flush()
    seen: dict[int, list[int]] = {}
    first = 0
    for event in sent:
        if isinstance(event, Steps):
            assert event.first == first
            first += len(event.end_s)
            for request, made in zip(event.request, event.made, strict=True):
                seen.setdefault(request, []).append(made)
        elif isinstance(event, RequestEnds):
            assert all(seen[request] == [0, 1, 2, 3, 4] for request in event.request)
            assert event.text == ["0 1 2 3 4"] * len(event.request)
    assert first == 200
    assert sum(len(event.request) for event in sent if isinstance(event, RequestEnds)) == 40


def test_a_request_waits_for_a_reason_until_it_is_in_a_step_and_may_wait_for_it_again() -> None:
    log = StepLog([0.0, 0.0, 9.0])
    assert log.arrived(1.0) == 2
    log.wait(0.1, 1, "pages")
    log.wait(0.2, 1, "pages")
    log.wait(0.3, 1, "requests")
    assert log.waiting() == [0, 1]
    log.enter([1])
    assert log.waiting() == [0]
    log.wait(0.4, 1, "requests")
    assert log.waits == [(0.1, 1, "pages"), (0.3, 1, "requests"), (0.4, 1, "requests")]
    assert Waits(*map(list, zip(*log.waits, strict=True))).request == [1, 1, 1]
