"""Whatever a file or a name holds: it is read, or refused in one sentence; no traceback, no secret, no hang, and never
200 MB. A few of each kind by default, and in a process with these limits under `-m slow`; more by `tools/full`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend.paths import ROOT
from tests.hostile.readers import KINDS, read
from tests.support.processes import with_path

FEW, SOME, MANY = 8, 60, 300
QUICK = sorted(KINDS.keys() - {"histories"})


@pytest.mark.parametrize("kind", QUICK)
def test_a_few_inputs_of_each_kind_are_read_or_refused(kind: str) -> None:
    assert sum(read(kind, FEW).values()) >= FEW


def limited(kind: str, count: int) -> None:
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    command = [sys.executable, "-m", "tests.hostile.readers", kind, str(count)]
    done = subprocess.run(command, cwd=ROOT, env=env, text=True, capture_output=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["safetensors", "ggufs", "configs"])
def test_some_inputs_within_200_mb(kind: str) -> None:
    limited(kind, SOME)


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_many_inputs_within_200_mb(kind: str) -> None:
    limited(kind, MANY)


TENSOR = b',"%d":{"dtype":"F32","shape":[],"data_offsets":[0,0]}'
BIG: dict[str, bytes] = {
    "a tensor of six million dimensions": b'{"w":{"dtype":"F32","shape":[' + b"257," * 6_000_000 + b"1]}}",
    "400,000 tensors": b'{"__metadata__":0' + b"".join(TENSOR % n for n in range(400_000)) + b"}",
    "an index of 32 MiB": b'{"weight_map":{' + b'"":"a.safetensors",' * 1_766_000 + b'"":""}}',
    "an index of other things": b"{" + b'"":0,' * 6_700_000 + b'"":0}',
}
MEASURE = """
import sys
from pathlib import Path
from backend.errors import InputError
from backend.models.files.safetensors import read_header
from backend.models.files.weight_index import named_files
def most(): return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = most()
try:
    (named_files if "index" in sys.argv[1] else read_header)(Path(sys.argv[1]))
except InputError:
    pass
print((most() - before) >> 10)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", BIG)
def test_the_largest_header_that_is_read_takes_less_than_200_mb(name: str, tmp_path: Path) -> None:
    path = tmp_path / ("index.json" if "index" in name else "m.safetensors")
    path.write_bytes((b"" if "index" in name else len(BIG[name]).to_bytes(8, "little")) + BIG[name])
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(path)], env=env, text=True, capture_output=True, timeout=60
    )
    assert int(done.stdout) < 200
