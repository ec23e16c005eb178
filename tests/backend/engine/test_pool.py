"""The pool: which worker a slot gets, how long spares are tried, memory by device; and a worker is kept for the next
run only where its memory would be that run's alone."""

import msgspec
import pytest

from tests.support.scripted_executor import SCRIPTED, ScriptedExecutor
from tests.support.worker import plan_of
from tokendyno.backend.engine import pool as pool_module
from tokendyno.backend.engine.executor import HOST, Died, ExecutorKind, Inbox, Letter, StartError
from tokendyno.backend.engine.pool import Residue, WorkerPool
from tokendyno.backend.messages import Finished, Generate, Ready
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan, Plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of()


def of(kind: ExecutorKind) -> WorkerPool:
    return WorkerPool(lambda plan: kind)


def test_a_plan_that_needs_another_kind_gets_no_spare(plan: Plan) -> None:
    ranks = ExecutorKind(lambda inbox: ScriptedExecutor(inbox))
    pool = WorkerPool(lambda plan: SCRIPTED if plan is None else ranks)
    pool.wanted_spares = 1
    pool.prewarm()
    (spare,) = pool.spares
    worker = pool.take("A", plan)
    assert worker.kind is ranks and pool.spares == [spare] and spare.executor.alive


def test_ready_and_death_are_recorded_and_others_letters_are_ignored(plan: Plan) -> None:
    pool = of(SCRIPTED)
    worker = pool.take("A", plan)
    stranger = ScriptedExecutor(Inbox())
    assert pool.record(Letter(stranger, Died("x"))) == [] and pool.slots == {"A": worker} and not worker.ready
    assert pool.record(Letter(worker.executor, Ready(0, 0.0, {}))) == [] and worker.ready
    assert pool.record(Letter(worker.executor, Died("x"))) == ["A"] and pool.slots == {}


def test_memory_is_counted_by_device_over_all_slots(plan: Plan) -> None:
    pool = of(SCRIPTED)
    pool.take("A", plan).freeable_bytes = {HOST: 3, 0: 5}
    pool.take("B", plan).freeable_bytes = {0: 7}
    assert [pool.freeable_bytes(device) for device in (HOST, 0, 1)] == [3, 12, 0]


def test_spares_are_given_up_after_repeated_failures_until_one_starts(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "MAX_START_FAILURES", 3)
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    broken, tries = [True], []

    def start(inbox: Inbox) -> ScriptedExecutor:
        tries.append(1)
        if broken[0]:
            raise StartError("no memory")
        return ScriptedExecutor(inbox)

    pool = of(ExecutorKind(start))
    pool.wanted_spares = 1
    for _ in range(6):
        pool.prewarm()
    assert len(tries) == 3 and waits == [0.4, 0.8]
    with pytest.raises(StartError):
        pool.take("A", plan)
    assert "A" not in pool.slots
    broken[0] = False
    pool.record(Letter(pool.take("A", plan).executor, Ready(0, 0.0, {})))
    pool.wanted_spares = 2
    pool.prewarm()
    assert len(pool.spares) == 1


def test_a_worker_whose_memory_would_not_be_the_runs_alone_is_replaced_and_says_why(plan: Plan) -> None:
    pool = of(SCRIPTED)
    run = Generate(plan, "once", 0, 40, 1, 0.0, 0, True, True)
    longer = msgspec.structs.replace(run, max_new_tokens=150)
    worker = pool.take("A", plan, run)
    worker.executor.load_key = plan.load_key
    worker.residue.begin(run)
    left = {"left_bytes": 50.0 * (1 << 20), "proof_left_bytes": 0.0}
    pool.record(Letter(worker.executor, Finished("length", "", 0.1, 1.0, 400 << 20, "RSS", "clock", [], left)))
    assert pool.take("A", plan, run) is worker
    pool.wanted_spares = 1
    pool.prewarm()
    (spare,) = pool.spares
    assert pool.take("A", plan, longer) is spare and not worker.executor.alive
    assert "earlier runs left 50 MiB" in spare.remark


MIB = 1 << 20
RUN = Generate(Plan(LoadPlan(ModelSource("folder"))), "once", 0, 40, 1, 0.0, 0, True, True)
OTHER = msgspec.structs.replace(RUN, max_new_tokens=150)


def finished(left: float, proof: float, peak: int = 400 * MIB, attached: float | None = None) -> Finished:
    extra = {"left_bytes": left, "proof_left_bytes": proof}
    extra |= {} if attached is None else {"profiler_attached": attached}
    return Finished("length", "", 0.1, 1.0, peak, "RSS", "clock", [], extra)


def after(command: Generate, left_mib: float, proof_mib: float) -> Residue:
    residue = Residue()
    residue.begin(command)
    residue.note(finished(left_mib * MIB, proof_mib * MIB))
    return residue


@pytest.mark.parametrize(
    ("left_mib", "proof_mib", "same", "other"),
    [
        (7, 6, True, True),  # little is left
        (50, 6, True, False),  # kernels for the lengths of this run: its own again, but not another's
        (50, 40, False, False),  # even the same run would start higher
        (0, 0, True, True),
    ],
)
def test_what_was_left_decides_who_may_follow(left_mib: float, proof_mib: float, same: bool, other: bool) -> None:
    residue = after(RUN, left_mib, proof_mib)
    assert (residue.disturbs(RUN) == "") is same
    assert (residue.disturbs(OTHER) == "") is other
    assert residue.spent is not other


def test_two_different_runs_are_each_others() -> None:
    residue = after(RUN, 5, 0)
    residue.begin(OTHER)
    residue.note(finished(60 * MIB, 0))
    assert residue.disturbs(OTHER) and residue.disturbs(RUN)


def test_a_run_that_did_not_end_leaves_an_unknown_amount() -> None:
    residue = Residue()
    residue.begin(RUN)
    assert residue.disturbs(RUN) and residue.spent
    residue.refused()
    assert residue.disturbs(RUN) == "" and not residue.spent, "nothing ran"


@pytest.mark.parametrize(
    ("proofs", "kept"), [((0.0,), True), ((1.0,), False), ((1.0, None), False), ((0.0, None), True), ((1.0, 0.0), True)]
)
def test_a_profiler_that_still_listens_disturbs_every_run(proofs: tuple[float | None, ...], kept: bool) -> None:
    """A run without a proof says nothing of it."""
    residue = Residue()
    for attached in proofs:
        residue.begin(RUN)
        residue.note(finished(0, 0, attached=attached))
    assert (residue.disturbs(RUN) == "") is kept and residue.spent is not kept
    assert kept or "profiler" in residue.disturbs(RUN)


def test_a_run_of_much_memory_does_not_hide_what_a_small_one_would_have_with_it() -> None:
    residue = Residue()
    residue.begin(RUN)
    ended = finished(16 * MIB, 0, 850 * MIB)
    residue.note(ended)
    assert residue.disturbs(OTHER) == ""
    ended.extra["clean_bytes"] = 380.0 * MIB
    residue.note(ended)
    assert "16 MiB" in residue.disturbs(OTHER)
