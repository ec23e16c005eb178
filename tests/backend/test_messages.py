"""Messages of other versions are read; what is not known is an error, never half read."""

import msgspec
import pytest

from tokendyno.backend.counts import counts_of, flat
from tokendyno.backend.evidence import Evidence, Finding
from tokendyno.backend.messages import Samples, Started, Tokens, decode_command, decode_event, encode


def test_figures_keep_their_names_and_those_of_another_version_are_ignored() -> None:
    stored = {"energy_j": 2.5, "of_a_version_long_gone": 1.0, "load_moved_bytes": 0.0, "positions": 8.0}
    known = counts_of(stored)
    assert (known.machine.energy_j, known.prompt.positions) == (2.5, 8)
    counted = {"load_warmup_bytes": 0, "load_moved_bytes": 0, "drawn_tensors": 0, "positions": 8, "padding": 0}
    assert flat(known) == counted | {"energy_j": 2.5}, "what is unknown is left out, 0 is not"
    known.update(counts_of({"accepted": 3.0}))
    assert (known.drafts.accepted_tokens, known.prompt.positions) == (3, 8)


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
        encode(Started(3, 2, 8, ["a note"]))[:-5],
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
