"""The log of the page: a visitor who causes errors does not fill the disk."""

import io
import sys
import traceback

import pytest

from tokendyno.ui.gate.log import LEFT_OUT, MAX_CHARACTERS, PER_S, BoundedLog


def test_tracebacks_without_end_take_a_bounded_part_of_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """3.1 MB in 5 s: Gradio prints what a handler could not do, past `logging`."""
    now_s, file = [0.0], io.StringIO()
    monkeypatch.setattr(sys, "stderr", BoundedLog(file, lambda: now_s[0]))
    for _ in range(1_000):
        try:
            raise ValueError("x" * 1_000)
        except ValueError:
            traceback.print_exc()
    first = file.getvalue()
    assert MAX_CHARACTERS / 2 < len(first) <= MAX_CHARACTERS + len(LEFT_OUT) and first.count(LEFT_OUT) == 1
    print("still in this minute", file=sys.stderr)
    assert file.getvalue() == first
    now_s[0] += PER_S
    print("a minute later", file=sys.stderr)
    assert file.getvalue() == first + "a minute later\n"
