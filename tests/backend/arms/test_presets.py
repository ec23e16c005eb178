"""Every preset that is shipped is valid, and what is misspelt is refused by name."""

from pathlib import Path

import pytest

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.arms.presets import ArmPreset, arm_presets, prompts, read_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import catalogue
from tokendyno.backend.optimizations import all_axes, axis_names
from tokendyno.backend.paths import PRESETS

SETS = ("baseline", "guide-four", "guide-as-written", "gpt-oss", "lowest-latency", "lowest-memory", "longest-context")
GOOD = 'name = "x"\ntitle = "X"\nsummary = "S."\n'


@pytest.mark.parametrize("preset", arm_presets(), ids=lambda preset: preset.name)
def test_a_shipped_arm_names_real_choices_and_explains_itself(preset: ArmPreset) -> None:
    config = make_config("pocket", preset.choices)
    assert dict(config.choices) == preset.choices, "a default is written out"
    assert preset.title
    assert preset.summary.endswith(".")
    assert (PRESETS / "arms" / f"{preset.name}.toml").is_file()
    assert not set("=,") & set(preset.name)


@pytest.mark.parametrize("preset", arm_presets(), ids=lambda preset: preset.name)
def test_a_shipped_arm_runs_as_written_on_some_model_of_the_catalogue(preset: ArmPreset) -> None:
    """On an H200 with every package: neither refused nor with a choice that falls back."""
    reasons = {}
    for entry in catalogue():
        checked = check(make_config(entry.name, preset.choices), facts(entry.name), H200, Workload(prompt="x"))
        reasons[entry.name] = [v.reason for v in checked.verdicts if v.level in ("blocked", "fallback")]
        if not reasons[entry.name]:
            return
    raise AssertionError(reasons)


@pytest.mark.parametrize("name", ["baseline", "unwindowed", "static", "compiled", "cuda-graphs", "eager", "float32"])
def test_these_run_on_the_default_model_without_a_gpu(name: str) -> None:
    (preset,) = [p for p in arm_presets() if p.name == name]
    assert check(make_config("pocket", preset.choices), facts(), CPU, Workload(prompt="x")).blocked == ()


def test_sets_stand_before_single_tricks_and_those_in_the_order_of_their_axes() -> None:
    """A trick alone may bring along what it cannot be without."""
    places = {axis: i for i, axis in enumerate(axis_names())}
    assert [p.name for p in arm_presets()][: len(SETS)] == list(SETS)
    singles = [p for p in arm_presets() if p.name not in SETS]
    own = [max(places[axis] for axis in preset.choices) for preset in singles]
    assert own == sorted(own)


def test_no_two_presets_share_a_name_a_place_or_a_meaning() -> None:
    presets = arm_presets()
    assert len({p.name for p in presets}) == len({p.order for p in presets}) == len(presets)
    assert len({make_config("pocket", p.choices).id for p in presets}) == len(presets)
    assert len({p.name for p in prompts()}) == len(prompts())
    assert not {p.name for p in presets} & {axis.name for axis in all_axes()}


def test_every_shipped_prompt_is_a_workload_that_fits_the_default_model() -> None:
    for prompt in prompts():
        work = Workload(prompt.text, prompt.prompt_tokens, prompt.max_new_tokens, ignore_eos=prompt.ignore_eos)
        assert check(make_config("pocket", {}), facts(), CPU, work).blocked == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('name = "x"\ntitle = "X"\nsummary = "S."\nchoises = {}', "unknown field `choises`"),
        (GOOD + '[choices]\natention = "eager"', "Unknown axis 'atention'. Did you mean 'attention'?"),
        (GOOD + '[choices]\nattention = "spda"', "Unknown attention choice 'spda'. Did you mean 'sdpa'?"),
        ('name = "x"\ntitle = "X"', "summary"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_name(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(InputError) as refused:
        read_arm(tmp_path / "mine.toml")
    assert says in str(refused.value)
    assert "mine.toml" in str(refused.value)


@pytest.mark.parametrize("wish", ['[next_best]\ncache = ["dynamic"]', '[best_for.gpt_oss]\ncache = "dynamic"'])
def test_only_a_bundle_has_wishes(tmp_path: Path, wish: str) -> None:
    for line, refused in (("", True), ("bundle = true\n", False)):
        (tmp_path / "mine.toml").write_text(f"{GOOD}{line}{wish}\n")
        if refused:
            with pytest.raises(InputError, match="belong to a bundle"):
                read_arm(tmp_path / "mine.toml")
        else:
            assert read_arm(tmp_path / "mine.toml").bundle
