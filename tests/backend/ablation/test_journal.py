"""The journal of an ablation: what survives a kill, and what is refused."""

import resource
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tokendyno.backend.ablation.journal import Cost, Heading, Journal, Trial
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError

WORK = Workload("Once upon a time")
HEADING = Heading(
    "pocket", {}, [("cache", "static")], ["alone"], WORK, "cpu", {"torch": "2.13"}, machine="Xeon, 2 cores"
)
TRIALS = [Trial(arm, number, [0.5, 0.25], 0.5, 7, None, [1, 2]) for number in range(2) for arm in ("", "cache=static")]
COST = Cost("cache=static", 0.25, 0.5, 1.5, "large")


def written(path: Path) -> Journal:
    journal = Journal(path, HEADING)
    for trial in TRIALS:
        journal.add(trial)
    journal.add(COST)
    journal.close()
    return journal


def test_what_was_finished_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    written(path)
    again = Journal(path, HEADING)
    again.close()
    assert list(again.trials.values()) == TRIALS and again.costs == {"cache=static": COST}


def test_a_kill_at_any_byte_costs_at_most_the_trial_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    written(path)
    whole = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(whole) if byte == ord("\n")]
    for cut in {0, 1, 40, *ends, *(end - 1 for end in ends), *(end + 5 for end in ends[:-1])}:
        path.write_bytes(whole[:cut])
        journal = Journal(path, HEADING)
        kept = len(journal.trials) + len(journal.costs)
        assert kept == max(0, sum(end <= cut for end in ends) - 1)
        lines: list[Trial | Cost] = [*TRIALS, COST]
        for line in lines[kept:]:
            journal.add(line)
        journal.close()
        assert path.read_bytes() == whole, cut


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"changes": [("dtype", "float32")], "model": "gpt2"}, "differs in model and changes"),
        ({"device": "cuda", "machine": "H200"}, r"another machine \(Xeon, 2 cores; this is H200\)"),
        ({"machine": "Xeon, 4 cores"}, "this is Xeon, 4 cores"),
        ({"versions": {"torch": "2.14", "gguf": "1"}}, r"\(gguf missing, here 1; torch 2.13, here 2.14\)"),
    ],
)
def test_another_ablation_is_refused_and_nothing_of_its_journal_is_lost(
    other: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "journal"
    written(path)
    before = path.read_bytes()
    with pytest.raises(InputError, match=said):
        Journal(path, msgspec.structs.replace(HEADING, **other))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "not a journal\n",
        "a note without an end of line",
        '{"line":"ablation","model":"gpt',
        '{"line":"trial"}\n',
        msgspec.json.encode(COST).decode() + "\n",
    ],
)
def test_a_foreign_file_is_refused_and_left_as_it_is(text: str, tmp_path: Path) -> None:
    """Also one whose only line looks torn: it is no beginning of this journal."""
    path = tmp_path / "journal"
    path.write_text(text)
    with pytest.raises(InputError, match="journal"):
        Journal(path, HEADING)
    assert path.read_text() == text


def test_a_damaged_line_is_named_and_what_is_before_it_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    written(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"\xff\xfe\n", *lines[3:]]))
    with pytest.raises(InputError, match=r"Line 4 .* remove what begins there to keep 2 results"):
        Journal(path, HEADING)
    path.write_bytes(b"".join(lines[:3]))
    again = Journal(path, HEADING)
    again.close()
    assert len(again.trials) == 2


def test_a_journal_is_shown_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    writing = Journal(path, HEADING)
    writing.add(TRIALS[0])
    path.write_bytes(path.read_bytes() + b'{"line":"tri')
    before = path.read_bytes()
    assert [*Journal(path, HEADING, only_read=True).trials.values()] == TRIALS[:1] and path.read_bytes() == before
    writing.close()


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    first = Journal(tmp_path / "journal", HEADING)
    with pytest.raises(InputError, match="Another process writes"):
        Journal(tmp_path / "journal", HEADING)
    first.close()


def test_a_full_disk_is_a_sentence_and_what_was_finished_stays(tmp_path: Path) -> None:
    """A line of which the system takes only the beginning, as on a full disk."""
    path = tmp_path / "journal"
    journal = Journal(path, HEADING)
    journal.add(TRIALS[0])
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
    try:
        with pytest.raises(InputError, match="Copy it elsewhere and go on with the copy: finished trials are kept"):
            journal.add(TRIALS[1])
        journal.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes().startswith(before)
    again = Journal(path, HEADING)
    again.close()
    assert list(again.trials.values()) == TRIALS[:1] and path.read_bytes() == before


@pytest.mark.parametrize(
    ("path", "said"), [("/dev/full", "no regular file"), ("none/journal", "No such file"), ("n" * 300, "name too long")]
)
def test_what_is_no_file_is_refused(path: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        Journal(tmp_path / path, HEADING)
