"""Runs that are carried out in a process of their own, with its own engine and workers: on one GPU of this machine, or
on another machine. What comes back are the records of each run."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping

import msgspec

from tokendyno.backend.child_python import last_words, python_command
from tokendyno.backend.config import Request
from tokendyno.backend.executors.subprocess import environment
from tokendyno.backend.runs.records import Record


class Errand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    """The errand cannot be carried out there, now or later."""

    reason: str


Answer = Done | Impossible

encode = msgspec.json.Encoder().encode
decode_errand = msgspec.json.Decoder(Errand).decode
decode_answer = msgspec.json.Decoder(Answer).decode


class Broken(Exception):
    """The process ended without an answer to every request; the message says how, in a sentence."""


class ErrandProcess:
    """One such process, with `more` variables in its environment and `without` others. Any thread may end it."""

    def __init__(self, errand: bytes, more: Mapping[str, str], without: tuple[str, ...] = ()) -> None:
        own = {name: value for name, value in environment().items() if name not in without}
        self._said = tempfile.TemporaryFile()  # noqa: SIM115, closed with the process
        self._process = subprocess.Popen(
            python_command("tokendyno.backend.executors.errand_process", str(os.getpid())),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            env={**own, **more},
            start_new_session=True,
        )
        self._errand = errand

    def answers(self) -> Iterator[bytes]:
        """Each as it comes, encoded. Raises Broken. Call it once, from the thread that made this."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(self._errand + b"\n")
                process.stdin.close()
            yield from (line for line in process.stdout if line.endswith(b"\n"))
            if code := process.wait():
                raise Broken(self._cause(code))
        finally:
            self.end()
            process.wait()
            process.stdout.close()
            self._said.close()

    def end(self) -> None:
        """Kill it; its workers end with it."""
        self._process.kill()

    def _cause(self, code: int) -> str:
        self._said.seek(0)
        last = last_words(self._said.read().decode("utf-8", "replace").splitlines())
        how = f"was killed by signal {-code}" if code < 0 else f"exited with code {code}"
        return f"the process of a trial {how}. {last}".rstrip()
