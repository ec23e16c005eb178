"""The README names every axis, choice, command, option and setting, and nothing that is not there."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import app
from backend.arms import parse_arm
from backend.cli import _parser
from backend.models import catalogue
from backend.optimizations import axes
from backend.presets import arm_presets

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FOREIGN: set[str] = set()  # options of other programs that the README shows


def commands() -> dict[str, argparse.ArgumentParser]:
    parser = _parser()
    found = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


def options(parser: argparse.ArgumentParser) -> set[str]:
    return {o for a in parser._actions for o in a.option_strings if o.startswith("--")} - {"--help"}


def cli_options() -> set[str]:
    return set().union(*(options(parser) for parser in commands().values()))


def app_options(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Options of app.py, seen where it reads them."""
    seen: set[str] = set()

    class Seeing(app._Parser):
        def parse_args(self, *args: object, **more: object) -> argparse.Namespace:  # type: ignore[override]
            seen.update(options(self))
            raise KeyboardInterrupt

    monkeypatch.setattr(app, "_Parser", Seeing)
    with pytest.raises(KeyboardInterrupt):
        app.parse([], {})
    return seen


def code_blocks() -> Iterator[str]:
    for block in re.findall(r"```bash\n(.*?)```", README, re.DOTALL):
        yield from (line.partition("  #")[0].strip() for line in block.splitlines() if line.strip())


def test_every_axis_and_choice_stands_in_the_readme() -> None:
    for axis in axes():
        (row,) = re.findall(rf"^\| `{axis.name}` \|.*$", README, re.MULTILINE)
        cell = row.split("|")[2]
        assert re.findall(r"`([^`]+)`", cell) == [choice.name for choice in axis.choices], axis.name


def test_every_command_stands_in_the_readme() -> None:
    for name in commands():
        assert f"tokendyno {name}" in README


def test_every_option_stands_in_the_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    for option in cli_options() | app_options(monkeypatch):
        assert re.search(rf"`{option}[` ]", README), option


def test_every_option_in_the_readme_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    written = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert written <= cli_options() | app_options(monkeypatch) | FOREIGN


def test_every_command_line_in_the_readme_is_one() -> None:
    lines = [line for line in code_blocks() if line.startswith("tokendyno ")]
    assert len(lines) >= len(commands())
    for line in lines:
        given = _parser().parse_args(shlex.split(line)[1:])
        for arm in ("a", "b", "arm"):
            parse_arm("pocket", getattr(given, arm, ""))


def test_every_environment_variable_stands_in_the_readme_and_is_read() -> None:
    sources = [ROOT / "app.py", *ROOT.glob("backend/**/*.py"), *ROOT.glob("ui/**/*.py")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    pattern = r"\bTOKENDYNO_[A-Z_]+\b"
    assert set(re.findall(pattern, text)) == set(re.findall(pattern, README))


def test_every_model_of_the_catalogue_stands_in_the_readme() -> None:
    for entry in catalogue():
        assert entry.name in README


def test_every_file_that_the_readme_links_to_is_there() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).is_file(), target


def test_every_module_of_the_backend_stands_in_the_architecture() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    missing = [
        file.name
        for file in (ROOT / "backend").glob("*.py")
        if file.name not in text and file.stem not in ("__init__", "__main__")
    ]
    assert missing == []


def test_every_preset_parses() -> None:
    assert {preset.name for preset in arm_presets()} == {p.stem for p in (ROOT / "presets" / "arms").glob("*.toml")}
