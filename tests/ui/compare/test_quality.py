"""What the button Quality asks for, and what a page shows of it."""

import pytest

from backend.config import ArmRequest, Request, Workload
from backend.runs.run import Run
from backend.views.quality import PROMPT, TOO_SHORT, quality_view
from tests.support.runs import arm_records, created, ended
from ui.compare.quality import quality_request

SHORT = "Once upon a time"
LONG = "one of these words " * 8
WROTE = "and so they lived " * 10


def asked(prompt: str = SHORT, **a: str) -> Request:
    return Request("pocket", [ArmRequest("A", a), ArmRequest("B", {"cache": "static"})], Workload(prompt))


def shown(over: bool = True) -> Run:
    """A run with that prompt, as it is stored."""
    run = Run(created())
    for record in [*arm_records("A", 40, WROTE), *([ended()] if over else [])]:
        run.append(record)
    return run


def texts(request: Request, run: Run | None = None) -> dict[str, str]:
    quality = quality_request(request, run).quality
    assert quality is not None
    return {text.name: text.text for text in quality.texts}


def test_the_texts_of_the_project_are_read_and_the_prompt_where_it_is_long_enough() -> None:
    assert list(texts(asked())) == ["story", "prose", "code", "arithmetic"]
    assert texts(asked(LONG))[PROMPT] == LONG


def test_a_short_prompt_is_read_with_what_arm_a_wrote() -> None:
    assert texts(asked(), shown())[PROMPT] == SHORT + WROTE
    for request, run in ((asked(cache="static"), shown()), (asked("Another"), shown()), (asked(), shown(over=False))):
        assert PROMPT not in texts(request, run), "not what this arm wrote to this prompt"


@pytest.mark.parametrize(("prompt", "note"), [(SHORT, TOO_SHORT), (LONG, "")])
def test_before_both_arms_have_read_every_text_has_its_row(prompt: str, note: str) -> None:
    first = created()
    run = Run(type(first)(first.id, first.created, quality_request(asked(prompt), None), first.arms, "", "", {}, "cpu"))
    view = quality_view(run.snapshot(), "")
    assert view is not None and view.note == note and view.rows[0].kl == "\u2013"
    assert [row.title for row in view.rows][-1] == "All texts" and len(view.rows) == (6 if prompt == LONG else 5)
    assert view.progress.startswith("Read so far: A 0 of ")
    assert quality_view(shown().snapshot(), "") is None
