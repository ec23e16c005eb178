"""What a machine says of itself and of the model that it has."""

from pathlib import Path

import pytest

from tokendyno.backend import hardware
from tokendyno.backend.executors.far_rank import hello_of, share_of
from tokendyno.backend.models import resolve


def test_another_folder_with_the_same_files_is_the_same_model(tmp_path: Path) -> None:
    own = resolve("pocket")
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in Path(own.source.path).iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    there = hello_of(resolve(str(copy)))
    again = copy.rename(tmp_path / "again")
    assert hello_of(resolve(str(again))) == there
    (again / "config.json").write_text((again / "config.json").read_text() + " ")
    assert hello_of(resolve(str(again))) != there


@pytest.mark.parametrize(("model", "ranks", "problem"), [("nope", 1, "nope"), ("pocket", 4096, " for 4096 ranks.")])
def test_what_a_machine_lacks_is_told_and_stops_nothing_yet(
    model: str, ranks: int, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("LOCAL_WORLD_SIZE", ranks), ("WORLD_SIZE", 2 * ranks), ("GROUP_RANK", 1)):
        monkeypatch.setenv(name, str(value))
    share = share_of(model, None)
    assert (share.ranks, share.hosts, share.host) == (ranks, 2, 1)
    assert share.hello is not None and problem in share.hello.problem
    assert share.hello.device == hardware.detect().device


def test_a_machine_that_lacks_nothing_knows_where_its_own_copy_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOCAL_WORLD_SIZE", "1"), ("WORLD_SIZE", "2"), ("GROUP_RANK", "1")):
        monkeypatch.setenv(name, value)
    share = share_of("pocket", None)
    assert share.hello == hello_of(resolve("pocket")) and share.model_path == resolve("pocket").source.path
