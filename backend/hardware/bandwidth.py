"""Measures this machine's memory bandwidth (`tokendyno doctor --bandwidth`) and stores the result.

Measuring needs torch, so it runs in a process of its own. The result is stored beside the history, for roofline bounds.
"""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from tokendyno.backend.child_python import import_variables, last_words, python_command
from tokendyno.backend.errors import UNDECODABLE
from tokendyno.backend.files.whole import write_whole
from tokendyno.backend.hardware.number_formats import FormatTime
from tokendyno.backend.paths import bandwidth_file

if TYPE_CHECKING:
    from tokendyno.backend.hardware.machine import Machine

DEADLINE_S = 180.0
POLL_S = 0.2


class Bandwidth(msgspec.Struct, frozen=True):
    """One measurement.

    device    the GPU's name as NVML gives it, or the CPU's name and number of cores
    measured  when, in seconds since 1970
    bfloat16  of a CPU: how long products in that format take
    """

    read_bytes_per_s: float
    copy_bytes_per_s: float
    device: str
    method: str
    measured: float = 0.0
    bfloat16: list[FormatTime] = []


class MeasureFailed(Exception):
    """The bandwidth could not be measured; the message is the reason."""


def measure(
    machine: "Machine", deadline_s: float = DEADLINE_S, stopped: Callable[[], bool] = lambda: False
) -> Bandwidth:
    """Measure the device in use, in a separate process. MeasureFailed on any failure, time-out, or when `stopped`."""
    command = python_command("tokendyno.backend.worker.bandwidth", machine.device)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | import_variables(),
        )
    except OSError as error:
        raise MeasureFailed(f"the process could not be started ({error.strerror})") from None
    end_s = time.monotonic() + deadline_s
    with process:
        while True:
            try:
                stdout, stderr = process.communicate(timeout=POLL_S)
                break
            except subprocess.TimeoutExpired:
                late = time.monotonic() > end_s
                if late or stopped():
                    process.kill()
                    why = f"no result within {deadline_s:.0f} s" if late else "stopped"
                    raise MeasureFailed(why) from None
    try:
        fields = msgspec.json.decode(stdout.splitlines()[-1], type=dict[str, Any])
        bandwidth = msgspec.convert({**fields, "device": machine.name, "measured": time.time()}, Bandwidth)
    except (IndexError, *UNDECODABLE):
        reason = last_words(stderr.splitlines()) or f"its process exited with code {process.returncode}"
        raise MeasureFailed(reason) from None
    if min(bandwidth.read_bytes_per_s, bandwidth.copy_bytes_per_s) <= 0:
        raise MeasureFailed("the clock did not advance")
    return bandwidth


def remember(bandwidth: Bandwidth) -> str:
    """Store a measurement in place of an older one of the same device. Returns why that failed, "" if it did not."""
    others = [stored for stored in _read() if stored.device != bandwidth.device]
    file = bandwidth_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, msgspec.json.encode([*others, bandwidth]))
    except OSError as error:
        return f"{file} cannot be written ({error.strerror}), so roofline bounds will not use it."
    return ""


def recall(device: str) -> Bandwidth | None:
    """The stored measurement of a device (`Machine.name`); None if there is none, or the file cannot be read."""
    return next((stored for stored in _read() if stored.device == device), None)


def _read() -> list[Bandwidth]:
    with contextlib.suppress(OSError, *UNDECODABLE):
        return msgspec.json.decode(bandwidth_file().read_bytes(), type=list[Bandwidth])
    return []
