"""Python source as text: Python's own parser reads back what was written."""

import ast
from typing import Any

import pytest

from tokendyno.backend.script.source import WIDTH, comment, literal, quoted

TEXTS = [
    "",
    "plain",
    'say "hi"',
    "it's",
    "\"both\" and 'both'",
    "a\\",
    "\\n",
    "a\nb\r\tc",
    "\x00\x7f\x85\u2028\u202e",
    "🐻é",
    "{x}",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_literal_is_the_text_and_one_printable_line(text: str) -> None:
    shown = quoted(text)
    assert ast.literal_eval(shown) == text
    assert shown.isprintable()


@pytest.mark.parametrize(
    "value",
    [
        {},
        [],
        {"a": []},
        {"a": 1, "b": [True, None, 1.5e-6]},
        {"key": ["x" * 30] * 5},
        {"rope": {"theta": 1.0, "long": {"deep": list(range(60))}}},
        [["a" * 50, "b" * 50]],
        "x" * 200,
    ],
)
def test_a_literal_of_json_is_the_value_in_short_lines(value: Any) -> None:
    text = literal(value, "VALUE = ")
    (assignment,) = ast.parse(text).body
    assert isinstance(assignment, ast.Assign) and ast.literal_eval(assignment.value) == value
    assert all(len(line) <= WIDTH or " " not in line.strip() for line in text.splitlines()) or isinstance(value, str)


def test_numbers_that_python_has_no_literal_of_are_made() -> None:
    assert literal([float("inf"), float("-inf"), 1.5]) == '[float("inf"), float("-inf"), 1.5]'
    assert literal({"a": float("nan")}) == '{"a": float("nan")}'


@pytest.mark.parametrize(
    "text", ["x", "a\nimport os", "a\r\x0b\x0c\u2028import os", "\\", '"""', "word " * 100, "x" * 300]
)
def test_a_comment_stays_one(text: str) -> None:
    lines = comment(text)
    assert ast.parse("\n".join(lines)).body == []
    assert all(line.startswith("# ") and line.isprintable() for line in lines)
