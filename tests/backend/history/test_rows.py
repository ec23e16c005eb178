"""Who finds which runs, by what, and with which line."""

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.support.kept_runs import H200, history_of, made, run_on
from tokendyno.backend.history.history import History
from tokendyno.backend.history.search import Search, read_search
from tokendyno.backend.hosting.limits import Mode
from tokendyno.backend.hosting.visitor import LOCAL_USER, Visitor
from tokendyno.backend.runs.records import Created

RUNS = [
    made(run_on("old", at_s=1_000.0, prompt="A fox named Pip")),
    made(run_on("gpu", H200, at_s=200_000.0), line="B generates 2.6x faster."),
    made(run_on("new", at_s=300_000.0, prompt="ÄRGER 100%_off")),
]
ADA, EVE = Visitor("ada"), Visitor("guest:eve")


def ids(kept: History, visitor: Visitor = LOCAL_USER, **fields: str) -> list[str]:
    return [row.id for row in kept.listing.find(read_search(fields, zone_s=0.0), visitor).rows]


def test_runs_are_found_by_everything_that_is_searched(tmp_path: Path) -> None:
    with history_of(tmp_path / "h.sqlite", RUNS) as kept:
        kept.changes.rename("old", "First Try", LOCAL_USER)
        kept.changes.note("old", "before the update", LOCAL_USER)
        assert ids(kept) == ["new", "gpu", "old"]
        assert ids(kept, q="fox PIP") == ["old"]
        assert ids(kept, q="first update") == ["old"]  # a word of the name, another of the note
        assert ids(kept, q="2.6x") == ["gpu"]
        assert ids(kept, q="ärger") == ["new"] and ids(kept, q="100%_off") == ["new"] and ids(kept, q="1%o") == []
        assert ids(kept, machine="h200") == ["gpu"]
        assert ids(kept, model="POCKET") == ["new", "gpu", "old"] and ids(kept, model="llama") == []
        assert ids(kept, axis="cache") == ["new", "gpu", "old"] and ids(kept, axis="dtype") == []
        assert ids(kept, axis="cache=dynamic") == ["new", "gpu", "old"] and ids(kept, axis="cache=static") == []
        assert ids(kept, since="1970-01-03", until="1970-01-03") == ["gpu"]
        found = kept.listing.find(Search(page=1, per_page=2), LOCAL_USER)
        assert ([row.id for row in found.rows], found.total, found.kept) == (["old"], 3, 3)
        assert kept.listing.find(Search(("fox",), page=9), LOCAL_USER).rows == []
        (row,) = kept.listing.find(Search(("fox",)), LOCAL_USER).rows
        assert (row.line, row.machine, row.name) == ("B is faster.", "Ryzen 7, 8 cores", "First Try")
        assert [(arm.name, arm.text) for arm in row.arms] == [("A", "defaults"), ("B", "cache=unwindowed")]


@pytest.mark.parametrize(("mode", "shown"), [("team", ["theirs"]), ("public", []), ("local", [])])
def test_a_run_is_its_owners_unless_it_is_shared_in_a_team(mode: Mode, shown: list[str], tmp_path: Path) -> None:
    runs = [made(run_on("theirs", owner="ada")), made(run_on("hers", owner="ada")), made(run_on("mine", owner="bob"))]
    bob = Visitor("bob")
    with history_of(tmp_path / "h.sqlite", runs, "team") as kept:
        assert ids(kept, bob) == ["mine"] and ids(kept, EVE) == []
        kept.changes.share("theirs", True, ADA)
        row = kept.listing.one("theirs", bob)
        assert row is not None and (row.mine, row.shared, row.owner) == (False, True, "ada")
    with history_of(tmp_path / "h.sqlite", mode=mode) as kept:
        assert set(ids(kept, bob)) == {"mine", *shown}
        assert kept.listing.one("hers", bob) is None and kept.listing.named("hers", bob) == []


def test_a_damaged_row_is_shown_as_far_as_it_goes(tmp_path: Path) -> None:
    with history_of(tmp_path / "h.sqlite", RUNS) as kept:
        with closing(sqlite3.connect(tmp_path / "h.sqlite")) as db, db:
            db.execute(
                "UPDATE runs SET arms = 'torn', created = 'never', label = CAST(x'ff00' AS TEXT) WHERE id = 'gpu'"
            )
        (row,) = (one for one in kept.listing.find(Search(), LOCAL_USER).rows if one.id == "gpu")
        assert (row.arms, row.created, row.line) == ([], 0.0, "B generates 2.6x faster.")


def trial_of(run_id: str, trial: str, at_s: float) -> Created:
    first = run_on(run_id, at_s=at_s)
    return msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, trial=trial))


def test_an_imported_trial_with_control_characters_in_its_id_is_a_row_like_others(tmp_path: Path) -> None:
    with history_of(tmp_path / "h.sqlite", [made(trial_of("hostile", "worth\x1b[31m-1", 1.0))]) as kept:
        (row,) = kept.listing.find(Search(), LOCAL_USER).rows
    assert (row.trial, row.trials) == ("worth-1", 0)


def test_that_the_newest_trial_was_given_up_or_had_one_arm_is_not_said_of_all(tmp_path: Path) -> None:
    alone = trial_of("t1", "advice-1", 2_001.0)
    request = msgspec.structs.replace(alone.request, arms=alone.request.arms[:1])
    alone = msgspec.structs.replace(alone, request=request, arms=alone.arms[:1])
    given_up = [alone, msgspec.structs.replace(made(alone)[-1], status="cancelled", verdict="")]
    with history_of(tmp_path / "h.sqlite", [made(trial_of("t0", "advice-1", 2_000.0)), given_up]) as kept:
        (row,) = kept.listing.find(Search(), LOCAL_USER).rows
    assert (row.id, row.trials, row.status, row.arms) == ("t1", 2, "done", [])


def test_the_trials_of_an_ablation_are_one_row(tmp_path: Path) -> None:
    trials = [trial_of(f"t{n}", "worth-1", 2_000.0 + n) for n in range(3)]
    others = [trial_of("other", "sweep-2", 1_500.0), run_on("alone", at_s=2_001.5)]
    with history_of(tmp_path / "h.sqlite", [made(one) for one in (*trials, *others)]) as kept:
        assert ids(kept) == ["t2", "alone", "other"]
        found = kept.listing.find(Search(per_page=1), LOCAL_USER)
        (row,) = found.rows
        assert (found.total, found.kept, row.trial, row.trials) == (3, 3, "worth-1", 3)
        assert row.work == "3 trials" and row.line == ""
        assert [one.id for one in kept.listing.find(Search(page=1, per_page=1), LOCAL_USER).rows] == ["alone"]
        assert ids(kept, model="pocket") == ["t2", "alone", "other"]
        assert ids(kept, q="worth-1") == ["t2", "t1", "t0"], "each of them is found by the id that they share"
        assert kept.listing.find(Search(words=("worth-1",)), LOCAL_USER).kept == 5, "and then counts by itself"
        kept.changes.delete(["t2"], LOCAL_USER)
        assert ids(kept) == ["alone", "t1", "other"]
