"""Reads hostile files as the app does: anything else than an answer or an InputError is an error."""

import lzma
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.hostile import corpus
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import check_loadable, resolve
from tokendyno.backend.models.files.folder import chat_template, check_tokenizer, read_header, read_weights
from tokendyno.backend.models.files.gguf import read_gguf

LIMIT_S = 10
LONGEST = 1500


def _model(folder: Path, name: str, data: bytes) -> None:
    """A model folder with one hostile file, judged as before a run."""
    (folder / "config.json").write_bytes((corpus.POCKET / "config.json").read_bytes())
    (folder / name).write_bytes(data)
    read_weights(folder)
    chat_template(folder)
    with suppress(InputError):
        check_tokenizer(folder)
    facts = resolve(str(folder))
    with suppress(InputError):  # it has no weights
        check_loadable(facts)


def _file(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def _name(folder: Path, text: str) -> None:
    resolve(text, folder)
    with suppress(InputError):
        resolve(text, folder, local_paths=False)


def _recording(folder: Path, data: bytes) -> None:
    from tokendyno.backend.recordings.format import read_recording

    read_recording(_file(folder, "a.dyno", data))


def recordings() -> st.SearchStrategy[bytes]:
    """Recordings whose packed part is damaged, or whose records are."""
    from tests.support.runs import arm_records, created, ended
    from tokendyno.backend.recordings.format import NAME, pack

    run = [created(), *arm_records("A", 6), *arm_records("B", 6), ended()]
    body, line = msgspec.msgpack.encode(run), NAME + b"1\n"

    def packed(data: bytes) -> bytes:
        return line + lzma.compress(data, preset=0)

    records = corpus.changed_lines(msgspec.to_builtins(run), lambda made: msgspec.msgpack.encode(small_numbers(made)))
    return st.one_of(corpus.damaged(pack(run)), corpus.damaged(body).map(packed), records.map(packed))


def small_numbers(value: Any) -> Any:
    """The same with numbers that MessagePack can hold."""
    match value:
        case int() if not -(2**63) <= value < 2**64:
            return value % 2**64
        case str():
            return value.encode("utf-8", "replace").decode()
        case list():
            return [small_numbers(one) for one in value]
        case dict():
            return {small_numbers(key): small_numbers(one) for key, one in value.items()}
    return value


def _trace(folder: Path, data: bytes) -> None:
    from tokendyno.backend.traffic.trace_file import read_trace

    read_trace(_file(folder, "a.jsonl", data))


KINDS: dict[str, tuple[Callable[[], st.SearchStrategy[Any]], Callable[[Path, Any], object]]] = {
    "names": (lambda: corpus.texts, _name),
    "configs": (lambda: corpus.configs, lambda folder, data: _model(folder, "config.json", data)),
    "templates": (lambda: corpus.templates, lambda folder, data: _model(folder, "chat_template.jinja", data)),
    "tokenizer settings": (lambda: corpus.configs, lambda folder, data: _model(folder, "tokenizer_config.json", data)),
    "tokenizers": (lambda: corpus.tokenizers, lambda folder, data: _model(folder, "tokenizer.json", data)),
    "indices": (lambda: corpus.configs, lambda folder, data: _model(folder, "model.safetensors.index.json", data)),
    "safetensors": (lambda: corpus.safetensors, lambda folder, data: read_header(_file(folder, "m.safetensors", data))),
    "ggufs": (lambda: corpus.ggufs, lambda folder, data: read_gguf(_file(folder, "m.gguf", data))),
    "recordings": (recordings, _recording),
    "traces": (lambda: corpus.traces, _trace),
}
"""Each kind of input: what is drawn, and how the app reads it."""


def read(kind: str, count: int) -> Counter[str]:
    """Read that many inputs of a kind; raises for one that is answered in any other way than it should be."""
    make, reader = KINDS[kind]
    seen: Counter[str] = Counter()

    @seed(14)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(make())
    def one(data: Any) -> None:
        begin_s = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            try:
                reader(Path(name), data)
                seen["read"] += 1
            except InputError as error:
                said = str(error)
                assert "\n" not in said and len(said) < LONGEST and corpus.CANARY not in said, said[:2000]
                assert "Traceback" not in said and 'File "' not in said, said
                seen["refused"] += 1
        assert time.monotonic() - begin_s < LIMIT_S

    one()
    return seen
