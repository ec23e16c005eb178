"""The worker's heap keeps the blocks of a growing cache; its imports read the files of transformers once."""

import platform
import subprocess
import sys

import pytest

from tokendyno.backend.paths import ROOT

GROWING = """
import ctypes, resource, sys
sys.path.insert(0, {root!r})
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
if {settle}:
    from tokendyno.backend.worker.process import settle_heap
    settle_heap()
held = [libc.malloc(1 << 20), libc.malloc(1 << 20)]
begin = 0
for step in range(300):
    if step == 100:
        begin = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for i in range(2):  # keys and values, each a little longer than before
        grown = libc.malloc((1 << 20) + 4096 * step)
        ctypes.memset(grown, 1, (1 << 20) + 4096 * step)
        libc.free(held[i])
        held[i] = grown
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - begin) // 200)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the thresholds are glibc's")
def test_a_growing_cache_takes_no_new_memory_at_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_MMAP_THRESHOLD_", raising=False)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    faults = {}
    for settle in (False, True):
        script = GROWING.format(root=str(ROOT), settle=settle)
        faults[settle] = int(subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout)
    assert faults[False] > 200, "as it comes, each step has new memory"
    assert faults[True] < 20, "page faults a step"


SCANNED = """
import importlib.util, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tokendyno.backend.worker.process import light_imports
with light_imports():
    from transformers import LlamaForCausalLM
    from transformers.utils import import_utils
spec = importlib.util.spec_from_file_location("transformers.utils.again", import_utils.__file__)
again = importlib.util.module_from_spec(spec)
spec.loader.exec_module(again)
models = Path(sys.modules["transformers"].__file__).parent / "models"
assert import_utils.define_import_structure(models) == again.define_import_structure(models)
scans = import_utils.create_import_structure_from_path.cache_info()
print(scans.misses, again.create_import_structure_from_path.cache_info().misses)
"""


def test_transformers_reads_its_model_files_once_and_learns_the_same() -> None:
    script = SCANNED.format(root=str(ROOT))
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    ours, once = map(int, found.stdout.split())
    assert ours <= once + 5, "folders of models, and a few packages beside"
