"""Reads hostile files as the app does, in a process whose memory and time are limited: `python -m tests.hostile.readers
KIND COUNT`. Prints how many were read and refused; anything else than an answer or an InputError ends it with a code.
"""

import logging
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from backend.arms.presets import read_arm
from backend.errors import InputError
from backend.models import check_loadable, resolve
from backend.models.files.folder import chat_template, read_weights
from backend.models.files.gguf import read_gguf
from backend.models.files.safetensors import read_header
from tests.hostile import corpus

MEMORY = 200 << 20
LIMIT_S = 10
LONGEST = 1500


def _model(folder: Path, name: str, data: bytes) -> None:
    """A model folder with one hostile file, judged as before a run."""
    (folder / "config.json").write_bytes((corpus.POCKET / "config.json").read_bytes())
    (folder / name).write_bytes(data)
    read_weights(folder)
    chat_template(folder)
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


def _history(folder: Path, data: bytes) -> None:
    from backend.runs.log import RunLog
    from backend.runs.store import Store

    store = Store(_file(folder, "h.sqlite", data))
    for run_id in ("a", "b"):
        RunLog(store).get(run_id)
    store.newest("")
    store.close()


def histories() -> st.SearchStrategy[bytes]:
    """Damaged histories of two runs."""
    from backend.runs.store import Store
    from tests.backend.runs.test_store import whole

    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name) / "h.sqlite")
        for run_id in "ab":
            for record in whole(run_id):
                store.add(run_id, record)
        store.close()
        data = (Path(name) / "h.sqlite").read_bytes()
    return corpus.damaged(data)


KINDS: dict[str, tuple[Callable[[], st.SearchStrategy[Any]], Callable[[Path, Any], object]]] = {
    "names": (lambda: corpus.texts, _name),
    "configs": (lambda: corpus.configs, lambda folder, data: _model(folder, "config.json", data)),
    "templates": (lambda: corpus.templates, lambda folder, data: _model(folder, "chat_template.jinja", data)),
    "tokenizer settings": (lambda: corpus.configs, lambda folder, data: _model(folder, "tokenizer_config.json", data)),
    "indices": (lambda: corpus.configs, lambda folder, data: _model(folder, "model.safetensors.index.json", data)),
    "safetensors": (lambda: corpus.safetensors, lambda folder, data: read_header(_file(folder, "m.safetensors", data))),
    "ggufs": (lambda: corpus.ggufs, lambda folder, data: read_gguf(_file(folder, "m.gguf", data))),
    "tomls": (lambda: corpus.tomls, lambda folder, data: read_arm(_file(folder, "autotuned.toml", data))),
    "histories": (histories, _history),
}
"""Each kind of input: what is drawn, and how the app reads it."""


def read(kind: str, count: int) -> Counter[str]:
    """Read that many inputs of a kind; raises for one that is answered in any other way than it should be."""
    make, reader = KINDS[kind]
    seen: Counter[str] = Counter()

    @seed(14)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))  # fmt: skip
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


def main() -> None:
    """All that was said above, with the limits set."""
    warnings.simplefilter("ignore")
    kind, count = sys.argv[1], int(sys.argv[2])
    os.environ.update(HF_TOKEN=corpus.CANARY, HF_HUB_OFFLINE="1")
    logging.disable()
    read(kind, 3)  # imports and tables are no part of what a reader takes
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("a reader hangs"))
    signal.setitimer(signal.ITIMER_REAL, 60 + count)
    print(kind, dict(read(kind, count)), flush=True)


if __name__ == "__main__":
    main()
