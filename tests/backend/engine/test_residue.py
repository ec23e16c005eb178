"""A worker is kept for the next run only where its memory would be that run's alone."""

import msgspec
import pytest

from tokendyno.backend.engine.pool import Residue
from tokendyno.backend.messages import Finished, Generate
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan, Plan

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
