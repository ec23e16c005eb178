"""Every story is whole: its recording was checked on the way in, its arms run on a CPU; a bad file is one sentence."""

from pathlib import Path

import pytest

from tests.support.command_line import text_of
from tests.support.machines import CPU
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.claims.declared import shipped_claims
from tokendyno.backend.claims.view import measured_of
from tokendyno.backend.cli.main import main
from tokendyno.backend.cli.story import story_blocks
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import resolve
from tokendyno.backend.recordings.recorded_runs import SHIPPED, shipped_id, shipped_names, shipped_records
from tokendyno.backend.runs.run import folded
from tokendyno.backend.stories import first_story, stories, story
from tokendyno.backend.views.story_number import story_number
from tools import record


@pytest.mark.parametrize("name", shipped_names())
def test_what_is_shipped_was_made_by_its_recipe_and_passes_its_checks(name: str) -> None:
    recipe = record.recipes()[name]
    assert "20" in record.check(SHIPPED / f"{name}.dyno", recipe)


def test_each_recording_has_a_story_and_each_story_its_recordings() -> None:
    assert sorted(name for one in stories() for name in one.recordings) == shipped_names()
    assert 6 <= len(stories()) <= 13


@pytest.mark.parametrize("name", [one.name for one in stories() if one.here.page == "compare"])
def test_both_arms_of_a_story_run_on_a_cpu_and_differ(name: str) -> None:
    here = story(name).here
    facts, work = resolve(here.model), Workload(here.prompt, max_new_tokens=here.max_new_tokens)
    arms = [check(parse_arm(here.model, text), facts, CPU, work) for text in (here.a, here.b)]
    assert not any(arm.blocked for arm in arms), [arm.verdicts for arm in arms]
    assert arms[0].planned != arms[1].planned


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no front matter", "must begin with TOML"),
        ("+++\ntitle = 1\n+++\nx", "title"),
        ("+++\ntitel = 'x'\n+++\nx", "titel"),
        ("+++\nx = [\n+++\nx", "cannot be used"),
        ("+++\nx = " + "[" * 20_000 + "\n+++\nx", "nested too deeply"),
    ],
)
def test_a_file_that_is_no_story_is_named_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "broken.md"
    file.write_text(text)
    with pytest.raises(InputError, match=said) as raised:
        stories(tmp_path)
    assert "broken.md" in str(raised.value)


def test_a_story_has_no_verdict_of_its_own_but_what_was_measured_of_its_claims() -> None:
    known = {claim.name for claim in shipped_claims().claims}
    named = [name for one in stories() for name in one.claims]
    assert len(named) > 6 and set(named) <= known
    for one in stories():
        shown = " ".join(text_of(story_blocks(one)).split())
        for claim in measured_of(one.claims):
            assert f"Measured ({claim.title}): {claim.word}." in shown


def test_what_a_story_says_to_type_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    """Many requests have no one text to play: `replay` shows what they came to."""
    shown = " ".join(text_of(story_blocks(story("batching"))).split())
    assert "useful tokens/s" in shown and "tokendyno replay batching" in shown
    assert main(["replay", "batching"]) == 0
    assert "useful tokens/s" in capsys.readouterr().out


def test_the_terminal_tells_the_list_and_one_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["story"]) == 0
    listed = capsys.readouterr().out
    assert len(listed.splitlines()) == len(stories())
    assert main(["story", "launch-bound"]) == 0
    shown = capsys.readouterr().out
    assert "Recorded on NVIDIA H100" in shown and "as fast as" in shown and "tokendyno compare" in shown
    assert main(["story", "lunch-bound"]) == 2
    assert "Did you mean 'launch-bound'?" in capsys.readouterr().err


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_first_page_tells_a_story_whose_effect_exists_on_this_machine_with_a_number_from_its_recording(
    device: str,
) -> None:
    told = first_story(device)
    assert told.exists in ("", device)
    for one in stories():
        run = folded(shipped_records(shipped_id(one.recording)))
        beside = folded(shipped_records(shipped_id(one.beside))) if one.beside else None
        found = story_number(run, one.number, one.sittings, beside)
        assert bool(found.figure) == (one.name != "sinks"), "whose ratio is noise, and no number"
        if one.sittings:
            ratio = run.snapshot().comparison
            assert ratio is not None and any(abs(ratio.ratio / sitting - 1) < 0.01 for sitting in one.sittings), (
                one.name
            )
