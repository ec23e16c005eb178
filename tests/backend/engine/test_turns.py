"""The queue: owners take turns, each run knows its place, and how long it will wait is estimated from earlier runs."""

import itertools
import random
import time
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.support.processes import wait_for
from tests.support.scripted_executor import SCRIPTED, ScriptedExecutor
from tests.support.worker import request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.executor import ExecutorKind
from tokendyno.backend.engine.prediction import work_of
from tokendyno.backend.engine.turns import Pace
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.runs.records import ArmEvent

ADA, BOB, EVE = Visitor("ada", "10.0.0.1"), Visitor("bob", "10.0.0.2"), Visitor("eve", "10.0.0.1")
ROOMY = Limits("team", queued_runs=500)


def waiting_bench(limits: Limits = ROOMY, kind: ExecutorKind = SCRIPTED) -> Bench:
    """A bench whose engine has not been started, so that every run waits."""
    return Bench(lambda plan: kind, limits=limits)


@pytest.fixture
def silent() -> Iterator[Bench]:
    """A bench whose runs never end by themselves."""
    bench = waiting_bench(kind=ExecutorKind(lambda inbox: ScriptedExecutor(inbox, "silent")))
    bench.start()
    yield bench
    bench.close()


def order(bench: Bench, ids: list[str]) -> list[str]:
    """Run ids in the order in which they began."""

    def begun(run_id: str) -> float:
        records = bench.store.read(run_id)
        first = next(record for record in records if isinstance(record, ArmEvent))
        return bench.runs.get(run_id).created.created + first.at_s  # type: ignore[union-attr]

    return sorted(ids, key=begun)


def test_a_visitor_with_many_runs_delays_another_by_one_run_only() -> None:
    bench = waiting_bench()
    many = [bench.submit(request({}), ADA) for _ in range(5)]
    one, two = (bench.submit(request({}), BOB) for _ in range(2))
    assert [place.ahead if (place := bench.place(run_id)) else None for run_id in (many[0], one, many[1], two)] == [
        0,
        1,
        2,
        3,
    ]
    bench.start()
    for run_id in (*many, one, two):
        assert bench.wait(run_id, 20).status == "done"
    assert order(bench, [*many, one, two]) == [many[0], one, many[1], two, *many[2:]]
    assert bench.place(one) is None
    bench.close()


def test_turns_are_fair_whatever_the_order_of_arrival() -> None:
    """Between two runs of one visitor every other who waits has had a run."""
    rng, bench = random.Random(7), waiting_bench()
    visitors = [Visitor(f"user{n}") for n in range(5)]
    arrivals = [rng.choice(visitors) for _ in range(60)]
    ids = {bench.submit(request({}), visitor): visitor.owner for visitor in arrivals}
    left = Counter(ids.values())
    taken = [ids[job.id] for job in bench._turns]
    assert Counter(taken) == left
    for here, owner in enumerate(taken):
        left[owner] -= 1
        again = next((at for at in range(here + 1, len(taken)) if taken[at] == owner), len(taken))
        between = set(taken[here + 1 : again])
        assert between == {other for other, count in left.items() if other != owner and count} or not left[owner]
    really = [ids[job.id] for job in iter(bench._turns.take, None)]
    assert really == taken
    bench.close()


def test_a_run_that_is_stopped_while_it_waits_gives_its_turn_away(silent: Bench) -> None:
    running = silent.submit(request({}), ADA)
    wait_for(lambda: silent._current is not None)
    first, second = silent.submit(request({}), BOB), silent.submit(request({}), ADA)
    assert [silent.place(run_id).ahead for run_id in (first, second)] == [1, 2]  # type: ignore[union-attr]
    assert silent.cancel(first, BOB) and silent.place(first) is None
    assert silent.place(second).ahead == 1  # type: ignore[union-attr]
    assert silent.cancel(running, ADA)


def test_each_visitor_may_have_so_many_open_runs_and_no_more() -> None:
    limits = Limits("public", open_runs=2, address_runs=3, queued_runs=4)
    bench = waiting_bench(limits)
    first, _ = (bench.submit(request({}), ADA) for _ in range(2))
    with pytest.raises(InputError, match=r"You have 2 runs .* stop one"):
        bench.submit(request({}), ADA)
    bench.submit(request({}), EVE)
    with pytest.raises(InputError, match="Your network has 3 runs"):  # a new cookie does not help
        bench.submit(request({}), Visitor("guest:new", ADA.address))
    bench.submit(request({}), BOB)
    with pytest.raises(InputError, match="with 4 runs waiting"):
        bench.submit(request({}), Visitor("zoe", "10.0.0.9"))
    assert bench.cancel(first, ADA)
    bench.submit(request({}), ADA)
    bench.close()


def test_a_run_is_stopped_at_the_limit_and_keeps_what_it_measured() -> None:
    limits = Limits("public", run_s=0.3)
    bench = waiting_bench(limits, ExecutorKind(lambda inbox: ScriptedExecutor(inbox, "silent")))
    bench.start()
    begin_s = time.monotonic()
    run = bench.wait(bench.submit(request({}), ADA), 20)
    assert run.status == "cancelled" and "0.3 s, the limit of a run here" in run.message
    assert time.monotonic() - begin_s > 0.3
    bench.close()


def test_the_wait_is_unknown_until_something_was_measured_and_then_goes_by_tokens() -> None:
    pace = Pace()
    short, long = request({}, max_new_tokens=10), request({}, {}, max_new_tokens=40, repeats=2)
    assert work_of(short) == 10 and work_of(long) == 160
    assert pace.expected_s(short) is None
    for seconds in (1.0, 2.0, 9.0):
        pace.note(short, seconds)
    assert pace.expected_s(short) == 2.0 and pace.expected_s(long) == 32.0
    assert pace.expected_s(request({}, model="random:gpt2")) is None, "another model's runs do not tell"


def test_the_expected_wait_is_that_of_all_runs_before(silent: Bench) -> None:
    ids = []
    for visitor in itertools.islice(itertools.cycle((ADA, BOB)), 4):
        ids.append(silent.submit(request({}, max_new_tokens=8), visitor))
    wait_for(lambda: silent._current is not None)
    assert silent.place(ids[3]).wait_s is None  # type: ignore[union-attr]
    silent._pace.note(request({}, max_new_tokens=8), 100.0)
    place = silent.place(ids[3])
    assert place is not None and place.ahead == 3 and place.wait_s is not None and 280 < place.wait_s <= 300
