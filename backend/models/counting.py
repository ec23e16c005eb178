"""Has an architecture counted that is not in the table: transformers builds it, in a process of its own.

The process ends after the answer, and after a minute of a processor's time at the latest, however long that takes
beside others; its memory is limited. Answers are kept in the cache folder by a hash of the config and the versions that
counted it; those of the catalogue's models ship, in presets/counted.json. One process runs at a time, and says how far
it is."""

import functools
import hashlib
import importlib.metadata
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import msgspec
import psutil

from tokendyno.backend.child_python import import_variables, last_words, python_command
from tokendyno.backend.errors import UNDECODABLE, InputError
from tokendyno.backend.files.whole import PRIVATE, write_whole
from tokendyno.backend.models.facts import CacheLayers, Matrix, ModelKind
from tokendyno.backend.models.files.config_fields import encode_config
from tokendyno.backend.paths import PRESETS, ROOT, is_private, private_folder

VERSION = 12
"""Raised whenever an answer would differ for the same config: answers of other versions are not read."""


class Counted(msgspec.Struct, frozen=True):
    """One model, counted from transformers' own modules and cache. The fields are those of `ModelFacts`.

    float32_in   parameters that stay in float32 where the rest is loaded in a half precision, by its name; "built":
                 where the model is built with random weights
    workspace    by number format what a pass over B prompts of S tokens takes beside weights and cache: factors, in
                 bytes, of S, of B S, of S^2 and of B S^2; without formats that could not be counted
    """

    kind: ModelKind
    parameters: int
    buffer_bytes: int
    buffer_elements: int
    float32_in: dict[str, int]
    matrices: list[Matrix]
    cache: list[CacheLayers]
    tied: bool
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    max_positions: int
    experts: int
    experts_per_token: int
    sinks: bool
    fits_static: bool = True
    fits_slots: bool = True
    step_waits: bool = False
    fits_pages: bool = True
    shared_inputs: int | None = None
    workspace: dict[str, list[float]] = {}


class Answer(msgspec.Struct, frozen=True):
    """The count, or why there is none: exactly one of the two."""

    counted: Counted | None = None
    refused: str = ""


MOST_WAIT_S = 1_200.0
"""After so long a process is ended that gets hardly any time of a processor, or waits for what does not come."""
LOOK_S = 1.0
"""How often its progress is looked at."""

CPU_SECONDS = 60
"""Processor time that the process grants itself. DeepSeek-V3 takes 12 s."""

SHIPPED = PRESETS / "counted.json"

COMMAND = tuple(python_command("tokendyno.backend.counter"))

NOT_PASSED_ON = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL")
"""Parts of the names of environment variables that the process has no need of."""

_one_at_a_time = threading.Lock()
_wait: ContextVar[bool] = ContextVar("wait", default=True)


_watchers: list[Callable[[float | None], object]] = []


@contextmanager
def watched(watcher: Callable[[float | None], object]) -> Iterator[None]:
    """A context in which `watcher` gets the seconds that a count has taken, again and again, and None at its end."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def _notify(spent_s: float | None) -> None:
    for watcher in [*_watchers]:
        watcher(spent_s)


class Shipped(msgspec.Struct, frozen=True):
    """The counts of the catalogue's models, by `config_key`, and the transformers (major and minor) that counted."""

    version: int
    transformers: str
    counted: dict[str, Counted]


def config_key(config: dict[str, Any]) -> str:
    """What a config's shipped count is found by: how its weights are packed makes no difference."""
    shape = {name: value for name, value in config.items() if name != "quantization_config"}
    return hashlib.sha256(encode_config(shape).encode()).hexdigest()[:16]


def counted_by() -> str:
    return importlib.metadata.version("transformers").rpartition(".")[0]


@functools.cache
def _shipped() -> dict[str, Counted]:
    """The shipped counts by `config_key`; empty beside another transformers, which may count otherwise."""
    shipped = msgspec.json.decode(SHIPPED.read_bytes(), type=Shipped)
    return shipped.counted if (shipped.version, shipped.transformers) == (VERSION, counted_by()) else {}


class NotCountedYet(Exception):
    """Raised within `without_waiting` where the answer is not cached, so that somebody would have to wait for it."""


@contextmanager
def without_waiting() -> Iterator[None]:
    """A context in which `count` starts no process, and raises NotCountedYet instead."""
    token = _wait.set(False)
    try:
        yield
    finally:
        _wait.reset(token)


def count(config: dict[str, Any], where: str) -> Counted:
    """The model that a config describes; `where` names it in errors. InputError if it cannot be counted."""
    if shipped := _shipped().get(config_key(config)):
        return shipped
    data = encode_config(config).encode()
    file = _file(data)
    answer = _cached(file)
    if answer is None and not _wait.get():
        raise NotCountedYet
    if answer is None:
        with _one_at_a_time:
            answer = _cached(file) or _store(file, _ask(data, where))
    if answer.counted is None:
        raise InputError(
            f"{where}: {config.get('model_type')!r} models are not supported, because their memory and KV cache cannot "
            f"be predicted: {answer.refused}. Choose another model."
        )
    return answer.counted


def _file(data: bytes) -> Path:
    versions = [importlib.metadata.version(package) for package in ("transformers", "torch")]
    key = hashlib.sha256(b"\0".join([data, str(VERSION).encode(), *(version.encode() for version in versions)]))
    return private_folder("counts") / f"{key.hexdigest()}.json"


def _cached(file: Path) -> Answer | None:
    """The answer in that file; None if there is none, or none of ours."""
    try:
        if not is_private(file):
            return None
        return msgspec.json.decode(file.read_bytes(), type=Answer)
    except (OSError, *UNDECODABLE):
        return None


def _store(file: Path, answer: Answer) -> Answer:
    """Cache an answer. A full disk costs the next count, not this one."""
    with suppress(OSError):
        write_whole(file, msgspec.json.encode(answer), PRIVATE)
    return answer


def bare_environment() -> dict[str, str]:
    """The environment of a process that builds a model from a stranger's config: no secrets, no Hub, no GPU."""
    passed = {k: v for k, v in os.environ.items() if not any(part in k.upper() for part in NOT_PASSED_ON)}
    offline = {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    return passed | offline | import_variables()


def answered(
    command: Sequence[str], data: bytes, cpu_limit_s: float, notify: Callable[[float], object] = lambda spent_s: None
) -> subprocess.CompletedProcess[bytes]:
    """Give a process `data` and wait for its end. Raises TimeoutExpired, CalledProcessError."""
    began_s = time.monotonic()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=bare_environment(), cwd=ROOT
    ) as process:
        try:
            to_send: bytes | None = data
            while True:
                try:
                    out, err = process.communicate(to_send, timeout=LOOK_S)
                    break
                except subprocess.TimeoutExpired:
                    to_send, spent_s, cpu_s = None, time.monotonic() - began_s, 0.0
                    with suppress(psutil.Error):
                        cpu_s = sum(psutil.Process(process.pid).cpu_times()[:2])
                    if cpu_s > cpu_limit_s or spent_s > MOST_WAIT_S:
                        raise
                    notify(spent_s)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, out, err)
    return subprocess.CompletedProcess(command, 0, out, err)


def _ask(data: bytes, where: str) -> Answer:
    """Start the process and wait for its answer. InputError if it has none, which is not cached."""
    try:
        return msgspec.json.decode(answered(COMMAND, data, 2 * CPU_SECONDS, _notify).stdout, type=Answer)
    except (OSError, subprocess.SubprocessError, *UNDECODABLE) as error:
        what, last = "ended without an answer", ""
        if isinstance(error, subprocess.TimeoutExpired) or getattr(error, "returncode", 0) == -signal.SIGXCPU:
            what = f"took more than {CPU_SECONDS} s of a processor's time, or {MOST_WAIT_S:,.0f} s"
        elif isinstance(error, subprocess.CalledProcessError):
            last = last_words(error.stderr.decode("utf-8", "replace").splitlines()).rstrip(".")
        raise InputError(
            f"{where}: this architecture has to be counted by transformers, and the process that does it {what}. "
            f"{f'Last line on stderr: {last}. ' if last else ''}Try again, or choose another model."
        ) from None
    finally:
        _notify(None)
