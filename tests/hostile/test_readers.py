"""Whatever a file or a name holds: it is read, or refused in one sentence; no traceback, no secret, no hang, and never
200 MB. A few of each kind by default, and in a process with these limits under `-m slow`; more by `tools/full`."""

import lzma
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.hostile.readers import KINDS, read
from tests.support.batches import batch_created
from tests.support.processes import with_path
from tests.support.runs import ended
from tokendyno.backend.hosting.limits import RECORDING_BYTES
from tokendyno.backend.messages import RequestEnds
from tokendyno.backend.paths import ROOT
from tokendyno.backend.recordings.format import NAME
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.traffic.trace_file import MAX_TRACE_BYTES

FEW, SOME, MANY = 8, 60, 300


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_inputs_of_each_kind_are_read_or_refused(kind: str) -> None:
    assert sum(read(kind, FEW).values()) >= FEW


def limited(kind: str, count: int) -> None:
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    command = [sys.executable, "-m", "tests.hostile.readers", kind, str(count)]
    done = subprocess.run(command, cwd=ROOT, env=env, text=True, capture_output=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["safetensors", "configs"])
def test_some_inputs_within_200_mb(kind: str) -> None:
    limited(kind, SOME)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_many_inputs_within_200_mb(kind: str) -> None:
    limited(kind, MANY)


TENSOR = b',"%d":{"dtype":"F32","shape":[],"data_offsets":[0,0]}'
BIG: dict[str, bytes] = {
    "400,000 tensors": b'{"__metadata__":0' + b"".join(TENSOR % n for n in range(400_000)) + b"}",
    "a vocabulary of 128 MiB": b'{"model":{' + b'"":0,' * ((128 << 20) // 5 - 4) + b'"":0}}',
    "an index of other things": b"{" + b'"":0,' * 6_700_000 + b'"":0}',
    "a recording of short texts": b"",
    "a trace of one request": b'{"max_new_tokens":1,"token_ids":[' + b"1," * (MAX_TRACE_BYTES // 2 - 20) + b"1]}",
}


def short_texts() -> bytes:
    """A recording of the largest size, all of it texts of two letters: each takes twenty times its bytes."""
    event = RequestEnds([], [], [], ["ab"] * (RECORDING_BYTES // 3 - 2_000))
    return (
        NAME
        + b"1\n"
        + lzma.compress(msgspec.msgpack.encode([batch_created(), ArmEvent("A", 0, 0.1, event), ended()]), preset=0)
    )


MEASURE = """
import sys
from pathlib import Path
from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files.safetensors import read_header
from tokendyno.backend.models.files.tokenizer_files import check_tokenizer
from tokendyno.backend.models.files.weight_index import named_files
from tokendyno.backend.recordings.files import read_recording
from tokendyno.backend.traffic.trace_file import read_trace
def most(): return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = most()
try:
    {"index.json": named_files, "m.safetensors": read_header, "a.dyno": read_recording, "trace": read_trace,
     "tokenizer.json": lambda path: check_tokenizer(path.parent)}[Path(sys.argv[1]).name](Path(sys.argv[1]))
except InputError:
    pass
print((most() - before) >> 10)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BIG)
def test_the_largest_file_that_is_read_takes_less_than_200_mb(name: str, tmp_path: Path) -> None:
    files = {"index": "index.json", "recording": "a.dyno", "trace": "trace", "vocabulary": "tokenizer.json"}
    path = tmp_path / next((file for word, file in files.items() if word in name), "m.safetensors")
    header = len(BIG[name]).to_bytes(8, "little") if path.suffix == ".safetensors" else b""
    path.write_bytes(short_texts() if path.suffix == ".dyno" else header + BIG[name])
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], env=env, text=True, capture_output=True, timeout=60
    )
    assert 1 < int(done.stdout) < 200
