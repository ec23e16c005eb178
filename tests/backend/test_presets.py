"""Every preset that is shipped is valid, and what is misspelt is refused by name."""

from pathlib import Path

import pytest

from backend.arms import make_config
from backend.config import Workload
from backend.errors import InputError
from backend.optimizations import axes
from backend.presets import FOLDER, ArmPreset, arm_presets, prompts, read_toml
from backend.rules import check
from tests.facts import CPU, facts


@pytest.mark.parametrize("preset", arm_presets(), ids=lambda preset: preset.name)
def test_a_shipped_arm_names_real_choices_and_runs_on_the_default_model(preset: ArmPreset) -> None:
    config = make_config("pocket", preset.choices)
    assert dict(config.choices) == preset.choices, "a default is written out"
    assert check(config, facts(), CPU, Workload(prompt="x")).blocked == ()
    assert preset.title
    assert preset.summary.endswith(".")
    assert (FOLDER / "arms" / f"{preset.name}.toml").is_file()
    assert not set("=,") & set(preset.name)


def test_no_two_presets_share_a_name_a_place_or_a_meaning() -> None:
    found = arm_presets()
    assert len({p.name for p in found}) == len({p.order for p in found}) == len(found)
    assert len({make_config("pocket", p.choices).id for p in found}) == len(found)
    assert len({p.name for p in prompts()}) == len(prompts())
    assert not {p.name for p in found} & {axis.name for axis in axes()}


def test_every_shipped_prompt_is_a_workload_that_fits_the_default_model() -> None:
    for prompt in prompts():
        work = Workload(prompt.text, prompt.prompt_tokens, prompt.max_new_tokens, ignore_eos=prompt.ignore_eos)
        assert check(make_config("pocket", {}), facts(), CPU, work).blocked == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "x"\ntitle = "X"\nsummary = "S."\nchoises = {}', "choises"),
        ('name = "x"\ntitle = "X"', "summary"),
        ('name = 1\ntitle = "X"\nsummary = "S."', "Expected `str`"),
        ("name = ", "Invalid value"),
        ("\x00", "cannot be used"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_name(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(InputError) as refused:
        read_toml(tmp_path / "mine.toml", ArmPreset)
    assert says in str(refused.value)
    assert "mine.toml" in str(refused.value)


@pytest.mark.parametrize("data", [b"name = '\xff'", None])
def test_an_unreadable_file_is_one_sentence(tmp_path: Path, data: bytes | None) -> None:
    if data is not None:
        (tmp_path / "mine.toml").write_bytes(data)
    with pytest.raises(InputError, match=r"mine\.toml.*Correct or remove it"):
        read_toml(tmp_path / "mine.toml", ArmPreset)


def test_leaves_a_good_file_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "x"\ntitle = "X"\nsummary = "S."\n[choices]\ncache = "static"\n')
    assert read_toml(tmp_path / "mine.toml", ArmPreset) == ArmPreset("x", "X", "S.", {"cache": "static"})
