"""A trace is read line by line; a bad line is named."""

from pathlib import Path

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.traffic.trace_file import read_trace

GOOD = '{"max_new_tokens": 5, "prompt": "Once", "arrival_s": 2}\n\n{"max_new_tokens": 6, "prompt_tokens": 9}\n'


def test_requests_come_in_the_order_of_their_arrival(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(GOOD + '{"max_new_tokens": 1, "token_ids": [5, 6], "arrival_s": 1.5}')
    found = read_trace(tmp_path / "t.jsonl")
    assert [(one.arrival_s, one.max_new_tokens) for one in found] == [(0.0, 6), (1.5, 1), (2.0, 5)]
    assert [one.tokens for one in found] == [9, 2, 1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 4 cannot be read"),
        ('{"max_new_tokens": "5", "prompt": "a"}', "line 4 cannot be read: Expected `int`"),
        ('{"max_new_tokens": 5, "promt": "a"}', "line 4 cannot be read: .*promt"),
        ('{"max_new_tokens": 0, "prompt": "a"}', "line 4: max_new_tokens is 0"),
        ('{"max_new_tokens": 5}', "line 4 has no prompt"),
        ('{"max_new_tokens": 5, "prompt": "a", "token_ids": [1]}', "line 4 has token_ids and another prompt"),
        ('{"max_new_tokens": 5, "prompt": "a", "arrival_s": -1}', "line 4: arrival_s is -1"),
        ("\xff", "line 4 cannot be read"),
        ('{"a\\nb\\u001b[2J": 1}', "unknown field `a b`"),
        ('{"' + "x" * 5_000 + '": 1}', r"x\.\.\.\. Write"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "t.jsonl").write_bytes(GOOD.encode() + line.encode("latin-1"))
    with pytest.raises(InputError, match=said):
        read_trace(tmp_path / "t.jsonl")


def test_a_file_without_requests_or_no_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("\n\n")
    with pytest.raises(InputError, match="has no requests"):
        read_trace(tmp_path / "t.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")
