"""A checkpoint of random weights that is written for a measurement."""

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import checkpoint


def test_what_cannot_be_written_is_one_sentence_with_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "WRITER", "tokendyno.backend.no_writer")
    said = r"random:pocket could not be written to /.*: .*No module named tokendyno\.backend\.no_writer\. Set TMPDIR"
    with pytest.raises(InputError, match=said), checkpoint.written("random:pocket"):
        pass
