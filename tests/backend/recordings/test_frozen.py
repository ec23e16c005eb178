"""Recordings of schema 2, as they were shipped on 2026-11-26, still open: every arm has its figures and its ledger."""

from pathlib import Path

import pytest

from tokendyno.backend.recordings.format import read_recording
from tokendyno.backend.runs.run import folded

FOLDER = Path(__file__).parents[2] / "fixtures" / "recordings"
FILES = sorted(FOLDER.glob("*.dyno"))


def test_all_of_them_are_here() -> None:
    assert len(FILES) == 13


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recording_of_schema_2_opens(file: Path) -> None:
    now = folded(read_recording(file)).snapshot()
    assert now.status == "done"
    for name, arm in now.arms.items():
        rows = {row.finding.axis: row.status for row in now.ledger(name)}
        assert len(rows) > 15 and "tokens" in rows and "failed" not in rows.values()
        assert arm.finished is not None and arm.finished.wall_s > 0
