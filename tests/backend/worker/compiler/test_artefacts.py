"""Compile artefacts are read back only when they are this user's own and whole; else there is a note, never a crash."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tokendyno.backend.models.source import ModelSource  # noqa: E402
from tokendyno.backend.plan import STATIC, GeneratePlan, LoadPlan, Plan  # noqa: E402
from tokendyno.backend.worker.compiler import artefacts  # noqa: E402

PLAN = Plan(LoadPlan(ModelSource("random")), GeneratePlan(STATIC, "default", "artefacts"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path))
    return tmp_path


def put(folder: Path, data: bytes, bits: int = 0o600) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in (("k.bin", data), ("k.json", b'{"cold_s": 12.5}')):
        (folder / name).write_bytes(content)
        (folder / name).chmod(bits)


def test_where_nothing_was_saved_the_user_is_told_that_it_will_be(cache: Path) -> None:
    taken = artefacts.take("k")
    assert (taken.loaded_bytes, taken.cold_before_s) == (0, 0) and "no compile artefacts yet" in taken.note


@pytest.mark.parametrize("case", ["no json", "torn json", "strange json", "open", "link", "rubbish"])
def test_a_file_that_is_not_whole_or_not_ours_alone_is_left_alone_with_a_note(cache: Path, case: str) -> None:
    folder = cache / "artefacts"
    put(folder, b"x" * 100, bits=0o622 if case == "open" else 0o600)
    match case:
        case "no json":
            (folder / "k.json").unlink()
        case "torn json":
            (folder / "k.json").write_bytes((folder / "k.json").read_bytes()[:-5])
        case "strange json":
            (folder / "k.json").write_text('{"cold_s": "soon"}')
        case "link":
            (folder / "k.bin").rename(cache / "elsewhere")
            (folder / "k.bin").symlink_to(cache / "elsewhere")
    taken = artefacts.take("k")
    assert taken.loaded_bytes == 0 and taken.note.startswith("compile artefacts ignored"), taken
    assert str(cache) not in taken.note


def test_the_key_tells_settings_shapes_and_models_apart() -> None:
    import msgspec

    other = msgspec.structs.replace(PLAN, generate=GeneratePlan(STATIC, "max-autotune", "artefacts"))
    model = msgspec.structs.replace(PLAN, load=LoadPlan(ModelSource("random"), dtype="float32"))
    keys = [
        artefacts.key_of(plan, batch, length)
        for plan, batch, length in ((PLAN, 1, 64), (PLAN, 2, 64), (PLAN, 1, 65), (other, 1, 64), (model, 1, 64))
    ]
    assert len(set(keys)) == 5 and artefacts.key_of(PLAN, 1, 64) == keys[0]
    assert all(key.isalnum() for key in keys)
