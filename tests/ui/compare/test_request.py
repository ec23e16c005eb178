"""From the controls to a request and back; what is said of an older run."""

import json
from typing import Any

import msgspec
import pytest

from tests.support.machines import CPU, facts
from tests.support.runs import created
from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.config import MOST_PAIRS, ArmRequest, reading_of
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.runs.run import Run
from tokendyno.ui.compare.request import (
    CUSTOM,
    Fields,
    changed,
    choice_values,
    matching_preset,
    preset_choices,
    read_choices,
    read_draft,
    read_request,
    within,
    written,
)
from tokendyno.ui.components.stale_line import UNREADABLE, stale_value

GOOD: dict[str, Any] = {
    "model": "pocket", "prompt": "Once", "max_new_tokens": 8, "batch_size": 1, "temperature": 0, "seed": 0,
    "seconds": 60, "price": 0, "prompt_tokens": 0, "ignore_eos": False, "top_k": 0, "top_p": 1, "chat": False,
    "system": "", "reasoning_effort": "", "text": "",
}  # fmt: skip
DEFAULTS = [axis.default for axis in prompt_axes()]


def values(a: list[Any] = DEFAULTS, b: list[Any] = DEFAULTS, **changed: Any) -> list[Any]:
    return [*Fields(**GOOD | changed), *a, *b]


@pytest.mark.parametrize(
    ("a", "b", "presets", "named"),
    [
        ({"dtype": "bfloat16"}, {"dtype": "float32"}, ("bfloat16", "float32"), ["", ""]),  # as the page opens
        ({"dtype": "bfloat16"}, {"cache": "static"}, ("bfloat16", "static"), ["dtype=bfloat16", "cache=static"]),
        ({}, {"loop": "own", "cache": "static"}, ("baseline", "lowest-latency"), ["", "lowest-latency"]),
        ({}, {}, ("baseline", "baseline"), ["baseline", ""]),
    ],
)
def test_an_address_names_the_arms_as_the_command_line_does(
    a: dict[str, str], b: dict[str, str], presets: tuple[str, str], named: list[str]
) -> None:
    assert written([ArmRequest("A", a), ArmRequest("B", b)], presets, ("bfloat16", "float32")) == named


def test_the_values_of_the_controls_make_the_request() -> None:
    b = choice_values({"cache": "static", "compile": "default"})
    more: dict[str, Any] = {
        "top_k": 40.0,
        "top_p": 0.9,
        "chat": True,
        "system": "Be concise.",
        "reasoning_effort": "high",
    }
    sent = values(b=b, model=" gpt2 ", max_new_tokens=32.0, temperature=0.5, ignore_eos=True, **more)
    request = read_request(sent)
    assert request.model == "gpt2"
    work, chosen = request.workload, [(arm.name, arm.choices) for arm in request.arms]
    assert chosen == [("A", {}), ("B", {"cache": "static", "compile": "default"})]
    assert (work.max_new_tokens, work.temperature, work.ignore_eos) == (32, 0.5, True)
    assert (work.top_k, work.top_p, work.chat, work.reasoning_effort) == (40, 0.9, True, "high")
    assert work.system == "Be concise."


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"prompt": "  "}, "prompt is empty"),
        ({"model": None}, "The model is missing"),
        ({"max_new_tokens": None}, "New tokens is empty"),
        ({"max_new_tokens": -5}, "^New tokens is -5; it must be a whole number from 1 to 32,768"),
        ({"batch_size": 0}, "^Batch size is 0; it must be a whole number from 1 to 1,024"),
        ({"temperature": 11}, "^Temperature is 11.0; it must be 0"),
        ({"top_p": 2}, "^Top p is 2.0; it must be above 0"),
        ({"max_new_tokens": 2.5}, "New tokens is 2.5"),
        ({"max_new_tokens": float("nan")}, "New tokens is .nan.. Enter a number"),
        ({"batch_size": "4"}, "Batch size is .4.. Enter a number"),
        ({"seconds": 0}, "Seconds is 0; it must be above 0"),
        ({"price": -1}, "price of an hour is -1; it must be a number from 0 on"),
        ({"text": "A few words."}, "has 3 words. Give one of at least 80"),
        ({"text": "word " * 20_000}, "over the limit of 65,536"),
        ({"top_p": None}, "Top p is empty"),
        ({"chat": True, "reasoning_effort": "most"}, "reasoning effort"),
    ],
)
def test_bad_input_is_named(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_request(values(**changed))


@pytest.mark.parametrize("choice", ["nosuch", "", None, 3, ["static"]])
def test_a_choice_that_does_not_exist_is_refused(choice: object) -> None:
    with pytest.raises(InputError):
        read_request(values(a=[choice, *DEFAULTS[1:]]))


def test_presets_and_choices_are_inverse_to_each_other() -> None:
    for preset in arm_presets():
        shown = choice_values(preset_choices(preset.name))
        assert matching_preset(read_choices(shown)) == preset.name
    assert matching_preset({"cache": "static", "dtype": "float16"}) == CUSTOM
    with pytest.raises(InputError, match="no preset"):
        preset_choices("nosuch")


def test_run_asks_for_pairs_until_they_decide() -> None:
    asked = read_request(values(seconds=30, price=2.5))
    assert (asked.until_s, asked.workload.repeats, asked.reading) == (30, MOST_PAIRS, [])
    assert asked.price_per_hour == 2.5 and changed(asked, read_request(values(price=3))) == ["the price"]
    mine = read_request(values(text="a word or two " * 200)).reading
    assert mine is not None and [one.name for one in mine] == ["your text, part 1", "your text, part 2"]


def test_a_visitor_gets_as_many_pairs_as_the_mode_allows_and_two_at_least() -> None:
    for tokens, batch, prompt, pairs in ((8, 1, 0, 5), (1024, 8, 0, 3), (1024, 8, 4096, 2)):
        asked = read_request(values(max_new_tokens=tokens, batch_size=batch, prompt_tokens=prompt))
        assert within(asked, LIMITS["public"]).workload.repeats == pairs
    assert within(read_request(values()), LIMITS["local"]).workload.repeats == MOST_PAIRS


def test_a_bundle_comes_to_what_the_model_and_machine_can_run() -> None:
    model = facts("gpt2")
    chosen = preset_choices("lowest-latency", model, CPU)
    assert chosen == {"cache": "static", "loop": "own"}
    assert matching_preset(chosen, "lowest-latency", model, CPU) == "lowest-latency"
    assert matching_preset(chosen, "", model, CPU) == "own-loop"  # which is all that it comes to here
    assert matching_preset(chosen, "lowest-latency", facts("SmolLM2-135M-Instruct"), CPU) == "own-loop"


def test_the_presets_that_the_arms_show_are_part_of_the_request_if_they_are_bundles() -> None:
    for shown, expected in (
        ("lowest-latency", "lowest-latency"),
        ("static", ""),
        ("nosuch", ""),
        (None, ""),
        (["x"], ""),
    ):
        a, b = read_request([*values(), shown, "gpt-oss"]).arms
        assert (a.preset, b.preset) == (expected, "gpt-oss")
    assert [arm.preset for arm in read_request(values()).arms] == ["", ""]


# --- against the run that is shown ----------------------------------------------------------------


def controls(arm_b: dict[str, str] | None = None, **edited: Any) -> list[object]:
    """The controls as they were for the run, but for what was edited."""
    workload = created().request.workload
    fields = {name: getattr(workload, name, GOOD[name]) for name in Fields._fields[1:]} | {"model": "pocket"} | edited
    arms = [ArmRequest("A", {}), ArmRequest("B", {"cache": "unwindowed"} if arm_b is None else arm_b)]
    return [*(fields[name] for name in Fields._fields), *(v for arm in arms for v in choice_values(arm.choices))]


@pytest.mark.parametrize(
    ("values", "edited"),
    [
        (controls(), []),
        (controls(seconds=5), []),
        (controls(arm_b={"cache": "static"}), ["arm B"]),
        (controls(model="gpt2", prompt="Another"), ["the model", "the prompt"]),
        (controls(max_new_tokens=65, arm_b={}, prompt=""), ["the prompt", "the workload", "arm B"]),
    ],
)
def test_what_was_edited_since_the_run_is_named(values: list[object], edited: list[str]) -> None:
    run = Run(created("run1"))
    named = changed(run.request, read_draft(values)[0])
    assert named == edited
    line = json.loads(stale_value(run, named))
    assert line["run"] == "run1" and line["text"].startswith("You changed") == bool(edited)
    assert json.loads(stale_value(run, None))["text"] == UNREADABLE and stale_value(None, None) == ""


def test_a_reading_is_of_a_model_and_two_arms_whatever_the_prompt() -> None:
    first = created("run1")
    quality = Quality([QualityText("one", "A text.")])
    ran = msgspec.structs.replace(first.request, workload=reading_of(quality), quality=quality)
    assert changed(ran, read_draft(controls(prompt="Another", max_new_tokens=65))[0]) == []
    assert changed(ran, read_draft(controls(arm_b={}))[0]) == ["arm B"]
