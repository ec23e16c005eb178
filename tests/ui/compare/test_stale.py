"""Results that belong to other settings than those that are shown."""

import json
from typing import Any

import msgspec
import pytest

from backend.config import ArmRequest, reading_of
from backend.quality import Quality, QualityText
from backend.runs.run import Run
from tests.support.runs import created
from ui.compare.request import Fields, choice_values
from ui.compare.stale import stale
from ui.components.stale_line import UNREADABLE


def controls(arm_b: dict[str, str] | None = None, **edited: Any) -> list[object]:
    """The controls as they were for the run, but for what was edited."""
    workload = created().request.workload
    fields = {name: getattr(workload, name) for name in Fields._fields[1:]} | {"model": "pocket"} | edited
    asked = [ArmRequest("A", {}), ArmRequest("B", {"cache": "unwindowed"} if arm_b is None else arm_b)]
    return [*(fields[name] for name in Fields._fields), *(v for arm in asked for v in choice_values(arm.choices))]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (controls(), ""),
        (controls(repeats=5), ""),
        (controls(arm_b={"cache": "static"}), "You changed arm B since this run."),
        (controls(model="gpt2", prompt="Another"), "You changed the model and the prompt since this run."),
        (controls(max_new_tokens=65, arm_b={}, prompt=""), "You changed the prompt, the workload and arm B since"),
        (controls(max_new_tokens=None), UNREADABLE),
    ],
)
def test_what_was_edited_since_the_run_is_named(values: list[object], says: str) -> None:
    found = json.loads(stale(Run(created("run1")), values))
    assert found["run"] == "run1" and found["text"].startswith(says) and bool(found["text"]) == bool(says)


def test_a_reading_is_of_a_model_and_two_arms_whatever_the_prompt() -> None:
    first = created("run1")
    quality = Quality([QualityText("one", "A text.")])
    request = msgspec.structs.replace(first.request, workload=reading_of(quality), quality=quality)
    run = Run(msgspec.structs.replace(first, request=request))
    assert json.loads(stale(run, controls(prompt="Another", max_new_tokens=65)))["text"] == ""
    assert "arm B" in json.loads(stale(run, controls(arm_b={})))["text"]


def test_without_a_run_nothing_is_stale() -> None:
    assert stale(None, controls(max_new_tokens=None)) == ""
