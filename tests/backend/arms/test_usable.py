"""Which choices a machine can run, alone or with what they need, and why not the others."""

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.arms.usable import Usable, usable_choices
from tokendyno.backend.hardware import Machine


def rows(machine: Machine, model: str = "SmolLM2-135M-Instruct") -> dict[str, Usable]:
    return {f"{row.axis}={row.choice}": row for row in usable_choices(facts(model), machine)}


def test_what_needs_another_choice_is_usable_with_it_and_says_so() -> None:
    row = rows(CPU)["loop=own"]
    assert (row.usable, row.blocked) == (True, False)
    assert row.why.startswith("with cache=static ")
    graphs = rows(H200)["cuda_graphs=manual"]
    assert (graphs.usable, graphs.blocked) == (True, False)
    assert graphs.why.startswith("with cache=static, loop=own")


def test_what_runs_alone_needs_nothing() -> None:
    row = rows(CPU)["cache=static"]
    assert (row.usable, row.blocked, row.why) == (True, False, "")


def test_what_no_other_choice_helps_is_blocked_with_its_reason() -> None:
    """The fix of such a choice is another choice of its own axis: that is no way to run it."""
    row = rows(CPU)["cuda_graphs=manual"]
    assert (row.usable, row.blocked) == (False, True)
    assert "CUDA graphs need a CUDA device." in row.why
    assert not row.why.startswith("with cuda_graphs")
    offloaded = rows(CPU)["cache=offloaded"]
    assert (offloaded.usable, offloaded.blocked) == (False, True)
    assert offloaded.why.startswith("Offloading moves")


def test_what_falls_back_is_neither_usable_nor_blocked() -> None:
    row = rows(CPU, "pocket")["attention=sdpa"]
    assert (row.usable, row.blocked) == (False, False)
    assert "sinks" in row.why


def test_a_note_offers_a_fix_without_being_in_need_of_it() -> None:
    """On Hopper sdpa has a note with the fix cache=static: it is usable as it is."""
    row = rows(H200)["attention=sdpa"]
    assert row.usable
    assert not row.why.startswith("with ")


def test_what_serves_a_single_sequence_is_usable_since_one_is_what_is_asked_for() -> None:
    row = rows(CPU)["speculation=prompt-lookup"]
    assert (row.usable, row.blocked, dict(row.needs)) == (True, False, {})
