"""Whatever a file or a name holds: it is read, or refused in one sentence; no traceback, no secret, no hang, and never
200 MB."""

import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.hostile import corpus
from tests.hostile.readers import KINDS, read
from tests.support.batches import batch_created
from tests.support.processes import with_path
from tests.support.runs import ended
from tokendyno.backend.hosting.limits import RECORDING_BYTES
from tokendyno.backend.messages import RequestEnds
from tokendyno.backend.paths import ROOT
from tokendyno.backend.recordings.format import NAME
from tokendyno.backend.runs.records import ArmEvent


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_of_each_kind_are_read_or_refused(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", corpus.CANARY)
    assert sum(read(kind, 100).values()) >= 100


def largest_vocabulary() -> bytes:
    """A tokenizer of 128 MiB, all of it one entry again and again."""
    return b'{"model":{' + b'"":0,' * ((128 << 20) // 5 - 4) + b'"":0}}'


def short_texts() -> bytes:
    """A recording of the largest size, all of it texts of two letters: each takes twenty times its bytes."""
    event = RequestEnds([], [], [], ["ab"] * (RECORDING_BYTES // 3 - 2_000))
    records = [batch_created(), ArmEvent("A", 0, 0.1, event), ended()]
    return NAME + b"1\n" + lzma.compress(msgspec.msgpack.encode(records), preset=0)


MEASURE = """
import sys
from contextlib import suppress
from pathlib import Path
from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files.folder import check_tokenizer
from tokendyno.backend.recordings.format import read_recording
def most(): return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
path, before = Path(sys.argv[1]), most()
with suppress(InputError):
    read_recording(path) if path.suffix == ".dyno" else check_tokenizer(path.parent)
print((most() - before) >> 10)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "make"), [("tokenizer.json", largest_vocabulary), ("a.dyno", short_texts)])
def test_the_largest_file_that_is_read_takes_less_than_200_mb(
    name: str, make: Callable[[], bytes], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(make())
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    command = [sys.executable, "-c", MEASURE, str(path)]
    done = subprocess.run(command, env=env, text=True, capture_output=True, timeout=60)
    assert 1 < int(done.stdout) < 200
