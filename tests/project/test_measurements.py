"""Readers find their way in MEASUREMENTS.md: its contents name every section, and its links lead somewhere."""

import re

from backend.paths import ROOT

TEXT = (ROOT / "MEASUREMENTS.md").read_text(encoding="utf-8")
HEADINGS = re.findall(r"^(##|###) (.+)$", TEXT, re.MULTILINE)
BEFORE_CONTENTS = ["Figures by claim", "Contents"]


def anchor(title: str) -> str:
    """As GitHub makes it of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_the_contents_name_every_section_in_order() -> None:
    contents = TEXT.split("\n## Contents\n")[1].split("\n## ")[0]
    named = re.findall(r"^( *)- (?:\*\*)?\[(.+?)\]\(#(.+?)\)", contents, re.MULTILINE)
    assert [("###" if indent else "##", title) for indent, title, _ in named] == HEADINGS[len(BEFORE_CONTENTS) :]


def test_links_lead_to_headings_that_exist_once() -> None:
    anchors = [anchor(title) for _, title in HEADINGS]
    assert len(set(anchors)) == len(anchors)
    assert set(re.findall(r"\]\(#(.+?)\)", TEXT)) <= set(anchors)


def test_sections_that_rules_name_as_their_source_exist() -> None:
    sections = re.findall(r'"MEASUREMENTS\.md: (.+?)"', "\n".join(p.read_text() for p in ROOT.glob("backend/**/*.py")))
    assert sections
    assert all(any(title.startswith(section) for _, title in HEADINGS) for section in sections), sections
