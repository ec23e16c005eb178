"""The memory bandwidth of this machine, as `tokendyno doctor --bandwidth` measured it, and where that is kept.

Measuring needs torch and therefore a process of its own. The result is a fact of the machine: it is kept beside the
history, and floors are worked out from it from then on.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from backend.hardware import Machine
from backend.redact import redact

DEADLINE_S = 180.0
LOOK_EVERY_S = 0.2
ROOT = Path(__file__).resolve().parent.parent


class Bandwidth(msgspec.Struct, frozen=True):
    """One measurement. `device`: NVML's name of the GPU, or the CPU's and its cores; `measured`: seconds since 1970."""

    read_bytes_per_s: float
    copy_bytes_per_s: float
    device: str
    method: str
    measured: float = 0.0


class MeasureFailed(Exception):
    """The bandwidth could not be measured; the text says why."""


def device_name(machine: Machine) -> str:
    """What a measurement is kept under: the device in use."""
    return machine.gpus[0].name if machine.gpus else f"{machine.cpu}, {machine.cores} cores"


def measure(machine: Machine, deadline_s: float = DEADLINE_S, stopped: Callable[[], bool] = lambda: False) -> Bandwidth:
    """Measure the device in use, now, in a process of its own. Raises MeasureFailed, also when it was stopped."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "backend.worker.bandwidth", machine.device]
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise MeasureFailed(f"no process could be started ({error.strerror})") from None
    end_s = time.monotonic() + deadline_s
    with process:
        while True:
            try:
                stdout, stderr = process.communicate(timeout=LOOK_EVERY_S)
                break
            except subprocess.TimeoutExpired:
                late = time.monotonic() > end_s
                if late or stopped():
                    process.kill()
                    why = f"no result within {deadline_s:.0f} s" if late else "it was stopped"
                    raise MeasureFailed(why) from None
    try:
        found = msgspec.json.decode(stdout.splitlines()[-1], type=dict[str, float | str])
        named = msgspec.convert({**found, "device": device_name(machine), "measured": time.time()}, Bandwidth)
    except (IndexError, msgspec.MsgspecError):
        said = [line for line in stderr.splitlines() if line.strip()]
        raise MeasureFailed(redact(said[-1][:300]) if said else f"it ended with code {process.returncode}") from None
    if min(named.read_bytes_per_s, named.copy_bytes_per_s) <= 0:
        raise MeasureFailed("the clock did not advance")
    return named


def remember(found: Bandwidth) -> str:
    """Keep a measurement in place of an older one of the same device; returns why that failed, "" if it did not."""
    kept = [old for old in _read() if old.device != found.device]
    file = _file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(".part")
        draft.write_bytes(msgspec.json.encode([*kept, found]))
        draft.replace(file)
    except OSError as error:
        return f"{file} cannot be written ({error.strerror}), so floors will not know of it."
    return ""


def recall(machine: Machine) -> Bandwidth | None:
    """The kept measurement of the device in use, None if there is none that can be read."""
    name = device_name(machine)
    return next((found for found in _read() if found.device == name), None)


def _read() -> list[Bandwidth]:
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(_file().read_bytes(), type=list[Bandwidth])
    return []


def _file() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(base) / "tokendyno" / "bandwidth.json"
