"""Stylesheets: all pages are one document, so what one page's rules reach must be its own."""

import re
from pathlib import Path

import pytest

from tokendyno import ui

FOLDER = Path(ui.__file__).parent
PAGES = ("batching", "claims", "fit", "history", "worth")
"""Folders with a stylesheet of their own; `components` is shared by all."""

CLASS = re.compile(r"td-[a-z-]*[a-z]")


def classes_of(page: Path) -> set[str]:
    """Classes that the scripts and modules of a page write."""
    files = [path for path in page.rglob("*") if path.suffix in (".js", ".py")]
    return {name for path in files for name in CLASS.findall(path.read_text(encoding="utf-8"))}


def selectors(sheet: str) -> list[str]:
    """The selectors of a stylesheet, those in parentheses left together."""
    plain = re.sub(r"/\*.*?\*/", "", sheet, flags=re.S)
    heads = [head.strip() for head in re.findall(r"([^{}]+)\{", plain)]
    return [one.strip() for head in heads if not head.startswith("@") for one in re.split(r",(?![^(]*\))", head)]


@pytest.mark.parametrize("page", PAGES)
def test_no_rule_of_a_page_reaches_into_another(page: str) -> None:
    others = [classes_of(one) for one in FOLDER.iterdir() if one.is_dir() and one.name not in (page, "components")]
    elsewhere = set[str]().union(*others)
    rules = selectors((FOLDER / page / "style.css").read_text(encoding="utf-8"))
    assert len(rules) > 5
    named = {rule: CLASS.findall(rule) for rule in rules if "#" not in rule}
    leaks = [rule for rule, names in named.items() if names and elsewhere.issuperset(names)]
    assert leaks == []
