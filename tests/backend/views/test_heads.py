"""Many viewers of one run: what is the same for all is made once, and never shown when it is no longer true."""

from collections.abc import Callable

import pytest

from tests.backend.runs.test_gate import FORMAT, compared
from tests.backend.views.test_batch_live import run_of
from tests.support.runs import created
from tokendyno.backend.messages import Progress
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.store import Store
from tokendyno.backend.views import live
from tokendyno.backend.views import live as heads_module
from tokendyno.backend.views.batch_live import BatchHead, batch_delta
from tokendyno.backend.views.live import Heads

START = [[0, 0, 0]] * 2


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Of each head that is made, the run."""
    found: list[object] = []
    make = live.head_of

    def counting(run: object, *more: object) -> live.Head:
        found.append(run)
        return make(run, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(live, "head_of", counting)
    return found


def test_viewers_share_a_head_until_the_run_goes_on(made: list[object]) -> None:
    heads: Heads[live.Head] = Heads()
    run, other = Run(created()), Run(created())

    def watch(one: Run, version: int, now_s: float) -> live.Delta:
        return live.delta(one, version, START, now_s, heads=heads)

    first, second = watch(run, 0, 1.0), watch(run, 0, 3.0)
    assert len(made) == 1 and first.head is not None and second.head is not None
    assert (first.head.now_s, second.head.now_s) == (1.0, 3.0), "the clock is each viewer's own"
    run.append(ArmEvent("A", 0, 1.0, Progress("load", "begin", 0.0)))
    later = watch(run, first.version, 4.0)
    assert later.head is not None and later.head.arms[0].state == "working" and len(made) == 2
    assert watch(run, later.version, 5.0).head is None and watch(other, 0, 5.0).head is not None and len(made) == 3


def test_the_head_of_an_ended_run_is_made_again_after_a_while(
    made: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    heads: Heads[live.Head] = Heads()
    run = compared(FORMAT, same_text=False)
    live.delta(run, 0, START, 1.0, heads=heads)
    monkeypatch.setattr(heads_module, "FRESH_S", 0.0)
    live.delta(run, 0, START, 1.0, heads=heads)
    assert len(made) == 2, "a reading by its arms may have been made since"


def test_only_a_first_pull_of_many_requests_brings_what_they_ask_for_from_a_shared_head() -> None:
    heads: Heads[BatchHead] = Heads()
    run = run_of()
    again, first = (batch_delta(run, version, [(0, 0, 0, 0)] * 2, 1.0, heads=heads).head for version in (0, -1))
    assert again is not None and first is not None and again.asked is None and first.asked is not None


def test_what_is_known_of_the_quality_takes_one_look_at_earlier_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    recent: Callable[..., object] = Store.recent
    monkeypatch.setattr(Store, "recent", lambda *of: looks.append(of) or recent(*of))  # type: ignore[func-returns-value]
    run = compared(FORMAT, same_text=False)
    found = live.delta(run, 0, START, 1.0, others=RunLog(Store(None))).head
    assert found is not None and found.verdict.gate
    assert len(looks) == 1
