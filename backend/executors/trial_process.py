"""Runs that are carried out in a process of their own, with its own engine and workers: on one GPU of this machine, or
on another machine. What comes back are the records of each run.

The process is `python -m tokendyno.backend.executors.trial_process PARENT_PID`: a `TrialTask` on standard input,
answers on standard output.
"""

import contextlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.child_python import last_words, python_command
from tokendyno.backend.config import Request
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.executors.subprocess import environment
from tokendyno.backend.hardware.same_versions import version_gap
from tokendyno.backend.runs.records import Record
from tokendyno.backend.worker.process import die_with_parent, guard_group, keep_events_apart


class TrialTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Runs, one after the other. `device` and `versions`: what the machine must have that carries them out."""

    requests: list[Request]
    models_dir: str | None
    device: str
    versions: dict[str, str]


class Done(msgspec.Struct, frozen=True, tag="done", tag_field="answer"):
    """A run has ended. `node`: name of the machine."""

    records: list[Record]
    node: str


class Impossible(msgspec.Struct, frozen=True, tag="impossible", tag_field="answer"):
    """The task cannot be carried out there, now or later."""

    reason: str


Answer = Done | Impossible

encode = msgspec.json.Encoder().encode
decode_task = msgspec.json.Decoder(TrialTask).decode
decode_answer = msgspec.json.Decoder(Answer).decode


class Broken(Exception):
    """The process ended without an answer to every request; the message says how, in a sentence."""


class TrialProcess:
    """One such process, with these `variables` in its environment and `without` others. Any thread may end it."""

    def __init__(self, task: bytes, variables: Mapping[str, str], without: tuple[str, ...] = ()) -> None:
        inherited = {name: value for name, value in environment().items() if name not in without}
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115, closed with the process
        self._process = subprocess.Popen(
            python_command("tokendyno.backend.executors.trial_process", str(os.getpid())),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**inherited, **variables},
            start_new_session=True,
        )
        self._task = task

    def answers(self) -> Iterator[bytes]:
        """Each as it comes, encoded. Raises Broken. Call it once, from the thread that made this."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(self._task + b"\n")
                process.stdin.close()
            yield from (line for line in process.stdout if line.endswith(b"\n"))
            if code := process.wait():
                raise Broken(self._cause(code))
        finally:
            self.end()
            process.wait()
            process.stdout.close()
            self._stderr.close()

    def end(self) -> None:
        """Kill it; its workers end with it."""
        self._process.kill()

    def _cause(self, code: int) -> str:
        self._stderr.seek(0)
        last = last_words(self._stderr.read().decode("utf-8", "replace").splitlines())
        how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
        return f"the process of a trial {how}. {last}".rstrip()


# --- in the process ------------------------------------------------------------------------------


def main() -> None:
    """Tie this process to its parent, then one run after the other."""
    die_with_parent(int(sys.argv[1]))
    guard_group()
    answers = os.fdopen(keep_events_apart(), "wb", buffering=0)

    def send(answer: Answer) -> None:
        answers.write(encode(answer) + b"\n")

    task = decode_task(sys.stdin.buffer.readline())
    if reason := unfit(task):
        send(Impossible(f"{platform.node()} cannot run trials: {reason}"))
        return
    bench = open_bench(None, Path(task.models_dir) if task.models_dir else None)
    bench.start()
    try:
        for request in task.requests:
            run_id = bench.submit(request)
            bench.wait(run_id)
            send(Done(bench.store.read(run_id), platform.node()))
    except InputError as error:
        send(Impossible(f"{platform.node()} cannot run this trial: {error}"))
    finally:
        bench.close()


def unfit(task: TrialTask) -> str:
    """Why this machine is none that the task asks for, in a sentence; "" if it is."""
    device = hardware.detect().device
    if device != task.device:
        return f"Its device is {device}, and trials are compared on {task.device}."
    return version_gap(task.versions, hardware.versions())


if __name__ == "__main__":
    main()
