"""Messages survive the wire one line each; what is not known is an error, never half read."""

import msgspec
import pytest

from tokendyno.backend.counts import RunCounts
from tokendyno.backend.evidence import Evidence, Finding
from tokendyno.backend.messages import (
    Annotation,
    Cancel,
    Command,
    Compiled,
    CompiledGraph,
    Event,
    Failed,
    Finished,
    Generate,
    Load,
    Loaded,
    PageGroup,
    PageMoves,
    PagesAllocated,
    Probe,
    Probed,
    Progress,
    Prove,
    Proved,
    Reading,
    Ready,
    RequestEnds,
    Samples,
    Score,
    Scored,
    Shutdown,
    Started,
    Steps,
    Tokens,
    Waits,
    decode_command,
    decode_event,
    encode,
)
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan, Plan

PLAN = Plan(LoadPlan(ModelSource("random", config_json='{"a": "\\n"}')))
COMMANDS: list[Command] = [
    Load(PLAN, 5),
    Generate(PLAN, "line one\nline two \x00 🐻", 0, 8, 1, 0.5, 2**63 - 1, True, False),
    Probe([5, 6]),
    Prove(),
    Score(PLAN, "a text", 16, 192, "/a", "/b"),
    Cancel(),
    Shutdown(),
]
EVENTS: list[Event] = [
    Ready(1, 0.5, {"torch": "2.13"}),
    Reading("tokenizer (tokenizer.json)", "tokenize"),
    Progress("load", "step", 1.5, 0.25, "half\nway"),
    Loaded(10, 5, True),
    Started(3, 2, 8, ["a note"]),
    Tokens(0, [0.1], [0.1], [1], [2], [3], [4], "</script>\n\u2028", [11], 2, 1),
    Samples([0.1], [7]),
    Steps(0, [0.0], [0.1], [2], [3], [1], [0, -1], [0, 2], [5, 1], [17, -1], [4096]),
    Waits([0.1], [3], ["pages"]),
    PagesAllocated([PageGroup("full_attention", 2, 16, 2048, 8)], 16384, 4096),
    PageMoves([0, 3], [0, 0], [1, 1], [0, -1]),
    RequestEnds([0], [0.5], ["eos"], ["a \u2028 text"]),
    Annotation("recompile", 7, 1.5, 2.9, "compiled again, because this failed: x < 3"),
    Finished(
        "eos",
        "text",
        0.1,
        0.2,
        5,
        "RSS",
        "clock",
        [Finding("cache", "static", "proof")],
        RunCounts(lookups=0.0, energy_j=1.0),
        Compiled(9.5, [CompiledGraph(8.0), CompiledGraph(1.0, "x < 3")], {"a break": 1}, {"cpu": 2}, 0, 1, 1),
    ),
    Proved([Finding("dtype", "bfloat16", "as loaded", 3, 3)], RunCounts(left_bytes=1.0)),
    Probed(3, [7, 8], [" a", " the"], [1.5, 1.25]),
    Scored([7, 8], [0.5, 2.25], [7, 9], [0.0, 0.125]),
    Failed("run", "it broke", "mend it", "Traceback", True, False),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: type(c).__name__)
def test_a_command_is_one_line_and_comes_back(command: Command) -> None:
    line = encode(command)
    assert b"\n" not in line
    assert decode_command(line) == command


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_an_event_is_one_line_and_comes_back(event: Event) -> None:
    line = encode(event)
    assert b"\n" not in line
    assert decode_event(line) == event


def test_figures_keep_their_names_and_those_of_another_version_are_ignored() -> None:
    known = RunCounts(lookups=0.0, energy_j=2.5)
    assert encode(known) == b'{"lookups":0.0,"energy_j":2.5}', "what is unknown is left out, 0 is not"
    stored = b'{"energy_j":2.5,"of_a_version_long_gone":1,"lookups":0}'
    assert msgspec.json.decode(stored, type=RunCounts) == known
    assert RunCounts(energy_j=1.0).filled_from(known) == RunCounts(lookups=0.0, energy_j=1.0)


def test_records_of_versions_without_sequences_and_ranks_are_read() -> None:
    stored = (
        b'{"type":"tokens","first":0,"t_s":[0.1],"latency_s":[0.1],"kv_sliding":[1],"kv_full":[2],'
        b'"memory_bytes":[3],"ids":[4],"text":"a"}'
    )
    tokens = decode_event(stored)
    assert tokens == Tokens(0, [0.1], [0.1], [1], [2], [3], [4], "a")
    assert isinstance(tokens, Tokens) and (tokens.sequence, tokens.rank, tokens.text_ends) == (0, 0, [])
    assert encode(tokens) == stored
    assert decode_event(b'{"type":"samples","t_s":[0.1],"memory_bytes":[7]}') == Samples([0.1], [7])
    mark = b'{"type":"mark","kind":"gc","token":3,"t_s":0.5,"seconds":0.25,"text":"collected"}'
    assert encode(decode_event(mark)) == mark


def test_every_message_is_in_these_tables() -> None:
    assert {type(c) for c in COMMANDS} == set(Command.__args__)
    assert {type(e) for e in EVENTS} == set(Event.__args__)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"a library printed this",
        b'{"type":"nobody"}',
        b'{"type":"cancel","more":1}',
        b'{"type":"samples","t_s":[0.1]}',
        b'{"type":"samples","t_s":["0.1"],"memory_bytes":[1]}',
        encode(EVENTS[4])[:-5],
    ],
)
def test_what_is_torn_or_foreign_is_refused(line: bytes) -> None:
    for decode in (decode_command, decode_event):
        if not (decode is decode_event and line == b'{"type":"cancel","more":1}'):
            with pytest.raises(msgspec.MsgspecError):
                decode(line)


@pytest.mark.parametrize(
    ("requested", "planned", "effective", "fell_back", "status"),
    [
        ("static", "static", "static", False, "verified"),
        ("auto", "sdpa", "sdpa", False, "verified"),
        ("sdpa", "eager", "eager", True, "fallback"),
        ("sdpa", "sdpa", "eager", False, "failed"),
        ("sdpa", "eager", "sdpa", True, "failed"),
        ("auto", "sdpa", "unknown", False, "failed"),
    ],
)
def test_a_row_of_the_ledger_is_green_amber_or_red(
    requested: str, planned: str, effective: str, fell_back: bool, status: str
) -> None:
    row = Evidence(requested, planned, Finding("attention", effective, "seen"), fell_back="why" if fell_back else "")
    assert row.status == status
