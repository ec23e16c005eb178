"""The worker's heap keeps the blocks of a growing cache."""

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
