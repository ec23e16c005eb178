"""Asking transformers, in a process of its own, for what the table of architectures does not have."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec
import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.models import CatalogueEntry, catalogue, counting, must_count, resolve
from tokendyno.backend.models.counting import SHIPPED, VERSION, Answer, Counted, Shipped, config_key, counted_by
from tokendyno.backend.models.families import FAMILIES

FALCON = {
    "model_type": "falcon",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 96,
    "multi_query": True,
    "new_decoder_architecture": False,
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def answering(monkeypatch: pytest.MonkeyPatch, reason: str) -> list[bytes]:
    """What is asked of the process, which refuses everything."""
    asked: list[bytes] = []

    def ask(data: bytes, where: str) -> Answer:
        asked.append(data)
        return Answer(refused=reason)

    monkeypatch.setattr(counting, "_ask", ask)
    return asked


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("a process was started")


def test_a_refusal_is_kept_and_names_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, "it is recurrent")
    for _ in range(2):
        with pytest.raises(InputError, match=r"^x: 'falcon' models are not supported.*: it is recurrent\."):
            counting.count(FALCON, "x")
    assert len(asked) == 1
    with counting.without_waiting(), pytest.raises(counting.NotCountedYet):
        counting.count(FALCON | {"vocab_size": 97}, "x")
    with counting.without_waiting(), pytest.raises(InputError):
        counting.count(FALCON, "x")


def test_a_file_that_others_can_write_or_that_is_torn_is_not_an_answer(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(monkeypatch, "no")
    spoils: list[Callable[[Path], object]] = [lambda f: f.chmod(0o666), lambda f: f.write_bytes(b'{"counted": {')]
    for spoil in spoils:
        with pytest.raises(InputError):
            counting.count(FALCON, "x")
        (file,) = (cache / "counts").iterdir()
        spoil(file)
        with counting.without_waiting(), pytest.raises(counting.NotCountedYet):
            counting.count(FALCON, "x")
    with pytest.raises(InputError):
        counting.count(FALCON, "x")
    assert len(asked) == 3


def test_a_process_that_ends_early_is_an_error_in_words_and_is_not_kept(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_torch = "raise ImportError('No module named torch')"
    for body, said in (
        ("import sys; sys.exit(3)", r"ended without an answer\. Try again"),
        ("print('{')", "ended without"),
        (no_torch, r"without an answer\. Last line on stderr: ImportError: No module named torch\. Try again"),
    ):
        monkeypatch.setattr(counting, "COMMAND", (sys.executable, "-c", body))
        with pytest.raises(InputError, match=said):
            counting.count(FALCON, "x")
    killed = f"import os; os.kill(os.getpid(), {int(signal.SIGXCPU)})"
    monkeypatch.setattr(counting, "COMMAND", (sys.executable, "-c", killed))
    with pytest.raises(InputError, match="more than 60 s of a processor"):
        counting.count(FALCON, "x")
    assert not list((cache / "counts").iterdir())


BUSY = "import time\nwhile time.process_time() < {cpu_s}: pass\n"
ANSWER = 'print(\'{"refused": "it is recurrent"}\')'


def test_a_count_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "LOOK_S", 0.1)
    monkeypatch.setattr(counting, "COMMAND", (sys.executable, "-S", "-c", BUSY.format(cpu_s=0.8) + ANSWER))
    seen: list[float | None] = []
    with counting.watched(seen.append), pytest.raises(InputError, match="it is recurrent"):
        counting.count(FALCON, "x")
    *before, end = seen
    spent = [spent_s for spent_s in before if spent_s]
    assert end is None and spent == sorted(spent) and spent[-1] > 0.3


@pytest.mark.parametrize(
    ("body", "most_wait_s"), [("import time; time.sleep(60)", 0.2), (BUSY.format(cpu_s=60), 60)], ids=["waits", "works"]
)
def test_a_count_that_takes_too_long_is_ended(body: str, most_wait_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MOST_WAIT_S", most_wait_s)
    monkeypatch.setattr(counting, "LOOK_S", 0.05)
    monkeypatch.setattr(counting, "CPU_SECONDS", 0.1)
    monkeypatch.setattr(counting, "COMMAND", (sys.executable, "-S", "-c", body))
    with pytest.raises(InputError, match=r"more than 0\.1 s of a processor's time, or \S+ s"):
        counting.count(FALCON, "x")


def test_the_process_gets_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    show = "import os, json; print(json.dumps({'refused': ' '.join(sorted(os.environ))}))"
    monkeypatch.setattr(counting, "COMMAND", (sys.executable, "-c", show))
    answer = counting._ask(b"{}", "x")
    assert "HF_HUB_OFFLINE" in answer.refused and "HF_TOKEN" not in answer.refused


@pytest.mark.slow
def test_an_architecture_outside_the_table_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "falcon").mkdir()
    (tmp_path / "falcon" / "config.json").write_bytes(msgspec.json.encode(FALCON))
    assert must_count(str(tmp_path / "falcon")) and not must_count("pocket") and not must_count("nonsense")
    facts = resolve(str(tmp_path / "falcon"))
    assert not must_count(str(tmp_path / "falcon"))
    assert (facts.heads, facts.kv_heads, facts.head_dim, facts.layers) == (4, 1, 16, 2)
    monkeypatch.setattr(subprocess, "Popen", never)
    began = time.process_time()
    assert resolve(str(tmp_path / "falcon")) == facts and time.process_time() - began < 0.5


HOSTILE = [
    {"model_type": "falcon", "num_hidden_layers": 4_096, "hidden_size": 1 << 40},
    {"model_type": "falcon", "vocab_size": 1 << 70},
    {"model_type": "falcon", "vocab_size": -5},
    {"model_type": "falcon", "hidden_size": "__import__('os').system('id')"},
    {"model_type": "evil", "auto_map": {"AutoModel": "x.Y"}},
]


@pytest.mark.full
@pytest.mark.parametrize("config", HOSTILE, ids=str)
def test_a_hostile_config_costs_a_bounded_process(config: dict[str, Any]) -> None:
    with pytest.raises(InputError) as error:
        counting.count(config, "config.json")
    assert len(str(error.value)) < 700 and str(error.value).isprintable()


def config(entry: CatalogueEntry) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(entry.config)
    return found


COUNTED = [entry for entry in catalogue() if config(entry)["model_type"] not in FAMILIES]


def counted(entry: CatalogueEntry) -> Counted:
    """Whole, however slow the machine is: elsewhere a pass that takes long is left out."""
    from tokendyno.backend.counter import workspace
    from tokendyno.backend.counter.model import count

    with mock.patch.object(workspace, "SECONDS", 60.0):
        return count(config(entry))


def test_every_model_outside_the_table_ships_its_count_and_nothing_else_ships() -> None:
    shipped = msgspec.json.decode(SHIPPED.read_bytes(), type=Shipped)
    assert set(shipped.counted) == {config_key(config(entry)) for entry in COUNTED}
    assert (shipped.version, shipped.transformers) == (VERSION, counted_by())


@pytest.mark.full
@pytest.mark.parametrize("entry", COUNTED, ids=lambda entry: entry.name)
def test_a_shipped_count_is_what_is_counted_here(entry: CatalogueEntry) -> None:
    shipped = msgspec.json.decode(SHIPPED.read_bytes(), type=Shipped)
    assert counted(entry) == shipped.counted[config_key(config(entry))]


def main() -> None:
    counts = {config_key(config(entry)): counted(entry) for entry in COUNTED}
    text = msgspec.json.encode(Shipped(VERSION, counted_by(), counts)).decode()
    SHIPPED.write_text(re.sub(r'("[0-9a-f]{16}":)', r"\n\1", text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
