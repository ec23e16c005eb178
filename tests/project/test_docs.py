"""Documents name every axis, choice, command, option and setting, and none that does not exist."""

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest

from tokendyno import app
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.cli.parser import make_parser
from tokendyno.backend.paths import ROOT
from tools import cli_docs, documents, figures, js_types

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DOCS = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page not in (figures.FILE, documents.FILE))
FOREIGN = {
    "--extra-index-url",
    "--help",
    "--network",
    "--flavor",
    "--folder",
    "--node-rank",
    "--nproc-per-node",
    "--pip-args",
    "--torch-backend",
    "--with",
}  # options of other programs, and of every one


def commands() -> dict[str, argparse.ArgumentParser]:
    parser = make_parser()
    found = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


def options(parser: argparse.ArgumentParser) -> set[str]:
    return {o for a in parser._actions for o in a.option_strings if o.startswith("--")} - {"--help"}


def cli_options() -> set[str]:
    return options(make_parser()).union(*(options(parser) for parser in commands().values()))


def app_options(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Options of app.py, collected where it parses them."""
    seen: set[str] = set()

    class Collecting(app._Parser):
        def parse_args(self, *args: object, **more: object) -> argparse.Namespace:  # type: ignore[override]
            seen.update(options(self))
            raise KeyboardInterrupt

    monkeypatch.setattr(app, "_Parser", Collecting)
    with pytest.raises(KeyboardInterrupt):
        app.parse([], {})
    return seen


def code_blocks() -> Iterator[str]:
    for block in re.findall(r"```bash\n(.*?)```", DOCS, re.DOTALL):
        yield from (line.partition("  #")[0].strip() for line in block.splitlines() if line.strip())


def test_the_page_of_the_command_line_is_what_help_says() -> None:
    assert cli_docs.PAGE.read_text(encoding="utf-8") == cli_docs.page(), "write it with python -m tools.cli_docs"


def test_the_javascript_is_typed_by_the_structs_that_it_takes() -> None:
    assert js_types.FILE.read_text(encoding="utf-8") == js_types.text(), "write it with python -m tools.js_types"


def test_every_option_of_the_page_is_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    section = cli_docs.PAGE.read_text(encoding="utf-8").partition("## `open`")[2].partition("\n## ")[0]
    for option in app_options(monkeypatch):
        assert re.search(rf"`{option}[` ]", section), option


def test_every_documented_option_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    written = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", DOCS))
    assert written <= cli_options() | app_options(monkeypatch) | FOREIGN


def test_every_documented_command_line_parses() -> None:
    lines = [line for line in code_blocks() if line.startswith("tokendyno ")]
    assert len(lines) >= len(commands())
    for line in lines:
        given = make_parser().parse_args(shlex.split(line)[1:])
        for arm in ("a", "b", "arm"):
            parse_arm("pocket", getattr(given, arm, None) or "")


def test_every_environment_variable_is_documented_and_read() -> None:
    sources = [ROOT / "app.py", *ROOT.glob("backend/**/*.py"), *ROOT.glob("ui/**/*.py")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in sources)
    pattern = r"\bTOKENDYNO_[A-Z_]+\b"
    assert set(re.findall(pattern, text)) == set(re.findall(pattern, DOCS))


def test_every_file_that_a_document_links_to_exists() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).is_file(), (page.name, target)


def test_every_module_test_and_file_that_a_document_names_exists() -> None:
    tests = {file.name for file in (ROOT / "tests").rglob("test_*.py")}
    for page in [*PAGES, *(ROOT / name for name in ("ARCHITECTURE.md", "CHANGELOG.md"))]:
        text = " ".join(page.read_text(encoding="utf-8").split())
        modules = re.findall(r"python -m (?:tokendyno\.)?((?:backend|tests|tokendyno|tools)[\w.]*\w)", text)
        files = re.findall(r"(?<![\w/.])((?:backend|docs|presets|tests|tools|ui)/[\w/.-]*\w)", text)
        for module in modules:
            path = ROOT / module.replace(".", "/")
            assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file(), (page.name, module)
        for file in files:
            assert "NAME" in file or (ROOT / file).exists(), (page.name, file)
        assert set(re.findall(r"`(test_\w+\.py)", text)) <= tests, page.name


def test_sections_that_rules_name_as_their_source_exist() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in ROOT.glob("backend/**/*.py"))
    for file in ("docs/figures.md", "lab/measurements.md"):
        titles = re.findall(r"^#+ (.+)$", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
        named = re.findall(rf'"{re.escape(file)}: (.+?)"', sources)
        assert named and set(named) <= set(titles)


def test_the_figures_are_those_of_their_files() -> None:
    """`python -m tools.figures` and `python -m tools.documents` write the pages."""
    for page in (figures, documents):
        assert page.FILE.read_text(encoding="utf-8") == page.text()
