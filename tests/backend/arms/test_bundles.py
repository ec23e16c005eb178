"""Bundles run everywhere: what cannot run gives way to the next best, nothing else does, and each change is said."""

import functools
from dataclasses import replace

import pytest

from tests.support.machines import CPU, GIB, H200, facts
from tokendyno.backend.arms.bundles import Granted, bundle, grant, noted, written_arm
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.arms.presets import ArmPreset, arm_presets, traits
from tokendyno.backend.config import ArmRequest, Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.device import roomy
from tokendyno.backend.hardware import Machine
from tokendyno.backend.hardware.number_formats import FormatTime
from tokendyno.backend.models import ModelFacts, catalogue
from tokendyno.backend.optimizations import defaults

WORK = Workload(prompt="Once")
BARE = replace(roomy(CPU), packages=(), kernel_layers=())  # no package but what torch and transformers bring
BARE_H200 = replace(
    roomy(H200), packages=(("torch", "2.13.0"), ("triton", "3.6.0")), hub_offline=True, kernel_layers=()
)
MACHINES = {"cpu": CPU, "h200": H200, "bare-cpu": BARE, "bare-h200": BARE_H200}
BUNDLES = [preset for preset in arm_presets() if preset.bundle]
MODELS = {facts(entry.name).architecture: entry.name for entry in catalogue()}.values()
"""One of each architecture."""
each = pytest.mark.parametrize("machine", MACHINES)


@functools.cache
def granted_to(preset: str, model: str, machine: str) -> Granted:
    """Of a bundle, by the names of all three."""
    (wished,) = (known for known in BUNDLES if known.name == preset)
    return grant(wished, facts(model), MACHINES[machine], WORK)


def refusals(choices: dict[str, str], model: ModelFacts, machine: Machine) -> list[str]:
    """The axes that refuse these choices. Memory, which no choice of a bundle is about, is left aside: there is enough
    of it, since finding a change that would make a model fit takes long."""
    blocked = check(make_config(model.model, choices), model, roomy(machine), WORK).blocked
    return [verdict.axis for verdict in blocked if verdict.axis != "model"]


def test_the_bundles_are_the_named_combinations() -> None:
    names = {"guide-four", "guide-as-written", "gpt-oss", "lowest-latency", "lowest-memory", "longest-context"}
    assert {preset.name for preset in BUNDLES} == names
    assert bundle("baseline") is None
    assert bundle("") is None


@each
@pytest.mark.parametrize("preset", BUNDLES, ids=lambda preset: preset.name)
def test_a_bundle_is_refused_for_no_architecture_of_the_catalogue(preset: ArmPreset, machine: str) -> None:
    for name in MODELS:
        granted = granted_to(preset.name, name, machine)
        assert refusals(dict(granted.choices), facts(name), MACHINES[machine]) == [], name


def test_a_bundle_of_which_nothing_is_left_says_so() -> None:
    (gpt_oss,) = (preset for preset in BUNDLES if preset.name == "gpt-oss")
    granted = grant(gpt_oss, facts("random:gpt2"), CPU, WORK)
    assert not granted.choices and granted.notes[0].reason.startswith("Nothing is left of the preset gpt-oss")


HYBRID = replace(facts("random:Qwen3-0.6B"), fits_slots=False)


def test_lowest_latency_keeps_a_static_cache_where_the_custom_loop_knows_not_all_layers() -> None:
    (latency,) = (preset for preset in BUNDLES if preset.name == "lowest-latency")
    granted = grant(latency, HYBRID, H200, WORK).choices
    assert granted["cache"] == "static" and "loop" not in granted


def test_lowest_latency_keeps_the_custom_loop_where_its_step_cannot_be_captured() -> None:
    (latency,) = (preset for preset in BUNDLES if preset.name == "lowest-latency")
    granted = grant(latency, replace(facts("random:Qwen3-0.6B"), step_waits=True), H200, WORK)
    assert granted.choices["loop"] == "own" and "cuda_graphs" not in granted.choices
    assert any("asks the device for numbers" in note.reason for note in granted.notes)


@each
@pytest.mark.parametrize("preset", BUNDLES, ids=lambda preset: preset.name)
def test_only_what_is_refused_gives_way_and_the_next_best_is_taken(preset: ArmPreset, machine: str) -> None:
    for name in MODELS:
        model, granted = facts(name), granted_to(preset.name, name, machine)
        said = {note.axis for note in granted.notes if "are predicted" not in note.reason}
        captured = bool(preset.captured) and granted.choices.get("cuda_graphs") == "manual"
        for axis, wished in preset.wishes(*traits(model), captured=captured).items():
            taken = granted.choices.get(axis) or (defaults()[axis] if defaults()[axis] in wished else None)
            better = wished[: wished.index(taken)] if taken else wished
            assert (axis in said) == bool(better), (name, axis)
            for choice in better:
                refused = refusals({**granted.choices, axis: choice}, model, MACHINES[machine])
                assert axis in refused, (name, axis, choice)


def test_what_was_left_out_and_what_replaced_it_is_said_with_the_reason() -> None:
    (preset,) = [known for known in BUNDLES if known.name == "longest-context"]
    cache, prefill = grant(preset, facts("Llama-3-8B"), CPU, WORK).notes
    assert "prefill=chunks-512 is left out: A quantized cache" in prefill.reason
    assert (cache.level, cache.axis, cache.source) == ("note", "cache", "presets/arms/longest-context.toml")
    assert cache.reason.startswith(
        "Of the preset longest-context, cache=offloaded gives way to cache=quantized-hqq4: Offloading moves"
    )
    (windowed,) = grant(preset, facts("Mistral-7B-v0.1"), CPU, WORK).notes  # whose prompt stays in chunks
    assert windowed.reason.startswith("Of the preset longest-context, cache=offloaded is left out: Offloading moves")


def test_the_longest_context_is_captured_where_all_positions_fit() -> None:
    preset = bundle("longest-context")
    assert preset is not None
    small = replace(H200, gpus=(replace(H200.gpus[0], memory_bytes=24 * GIB, free_bytes=23 * GIB),))
    captured = {axis: choice for axis, choice in {**preset.choices, **preset.captured}.items() if axis != "allocator"}
    for name, machine, wanted, more in (
        ("Llama-3-8B", small, captured, {}),  # 8,192 positions
        ("gpt-oss-20b", small, preset.choices, {"quantization": "mxfp4"}),  # 131,072, in eager attention
        ("gpt-oss-20b", H200, captured, {"quantization": "mxfp4"}),
    ):
        granted = grant(preset, facts(f"random:{name}"), machine, WORK)
        assert granted.choices == wanted | more, name
        said = "".join(note.reason for note in granted.notes)
        assert ("are predicted, and the GPU has 24.0 GiB." in said) == (wanted is preset.choices)


def test_the_lowest_latency_of_gpt_oss_has_kernels_for_its_experts() -> None:
    (preset,) = [known for known in BUNDLES if known.name == "lowest-latency"]
    granted = grant(preset, facts("gpt-oss-20b"), H200, WORK)
    assert granted == Granted({**preset.choices, "experts": "triton"})
    assert grant(preset, facts("Llama-3-8B"), H200, WORK).choices == preset.choices
    encoder = grant(preset, facts("bert-base-uncased"), H200, WORK).choices
    assert (encoder["compile"], encoder["cuda_graphs"]) == ("default", "manual")
    assert "kernels" not in encoder  # they compute single tokens


def test_the_lowest_memory_is_captured_where_that_takes_no_more() -> None:
    preset = bundle("lowest-memory")
    assert preset is not None
    static, four_bits = {**preset.choices, **preset.captured}, preset.choices
    for name, prompt, batch, wanted in (
        ("Llama-3-8B", 256, 1, static),
        ("Llama-3-8B", 256, 16, four_bits),  # the static cache of 16 sequences is larger than one in 4 bits
        ("gpt-oss-20b", 8_000, 1, {**static, "quantization": "mxfp4"}),
        ("Qwen3-0.6B", 8_000, 1, four_bits),
    ):
        model, work = facts(f"random:{name}"), Workload(prompt_tokens=prompt, max_new_tokens=128, batch_size=batch)
        granted = grant(preset, model, H200, work)
        assert granted.choices == wanted, name
        said = "".join(note.reason for note in granted.notes)
        assert ("GiB are predicted for this prompt and these lengths." in said) == (wanted is four_bits)
    assert "cuda_graphs" not in grant(preset, facts("Llama-3-8B"), CPU, WORK).choices


def test_a_preset_that_saves_memory_packs_no_weights_where_that_takes_more() -> None:
    preset = bundle("lowest-memory")
    assert preset is not None
    slow = replace(CPU, bfloat16=(FormatTime(8 << 20, 1, 1.5),))  # float32 instead, but not where weights are packed
    granted = grant(preset, facts("pocket"), slow, Workload(prompt_tokens=10, max_new_tokens=256))
    assert "quantization" not in granted.choices
    said = [note.reason for note in granted.notes if note.axis == "quantization"]
    assert len(said) == 1 and "bnb-nf4-double is left out: with and without, " in said[0]
    assert grant(preset, facts("random:Llama-3-8B"), slow, WORK).choices["quantization"] == "bnb-nf4-double"


def test_leaves_other_presets_alone() -> None:
    for preset in arm_presets():
        if not preset.bundle:
            assert grant(preset, facts("bert-base-uncased"), BARE, WORK) == Granted(preset.choices)


def test_an_arm_carries_its_notes_until_a_choice_is_changed() -> None:
    preset = bundle("lowest-latency")
    assert preset is not None
    model = facts("gpt2")
    arm = written_arm("A", preset.name, model.model, WORK, lambda: model, CPU)
    checked = check(make_config(model.model, arm.choices), model, CPU, WORK)
    with_notes = noted(checked, arm, model, CPU, WORK)
    notes = grant(preset, model, CPU, WORK).notes
    assert {note.axis for note in notes} == {"projections", "cuda_graphs", "prefill", "kernels"}
    assert with_notes.verdicts == (*notes, *checked.verdicts)
    assert noted(checked, ArmRequest("A", arm.choices), model, CPU, WORK) == checked
    changed = ArmRequest("A", {**arm.choices, "dtype": "float16"}, preset.name)
    assert noted(checked, changed, model, CPU, WORK) == checked
    assert noted(checked, ArmRequest("A", arm.choices, "nosuch"), model, CPU, WORK) == checked


def test_choices_beside_a_bundle_take_the_place_of_its_own() -> None:
    model = facts("Llama-3-8B")
    text = "lowest-latency, quantization=torchao-int4,prefill=whole"
    arm = written_arm("A", text, model.model, WORK, lambda: model, H200)
    preset = bundle("lowest-latency")
    assert preset is not None
    plain = dict(grant(preset, model, H200, WORK).choices)
    assert arm.choices == {**{k: v for k, v in plain.items() if k != "prefill"}, "quantization": "torchao-int4"}
    here = written_arm("A", "lowest-latency,dtype=bfloat16", model.model, WORK, lambda: model, CPU)
    checked = check(make_config(model.model, here.choices), model, CPU, WORK)
    assert "cuda_graphs" in {note.axis for note in noted(checked, here, model, CPU, WORK).verdicts}
    with pytest.raises(InputError, match="Unknown axis 'cach'"):
        written_arm("A", "lowest-latency,cach=static", model.model, WORK, lambda: model, CPU)


@pytest.mark.parametrize("machine", [CPU, H200], ids=["cpu", "h200"])
def test_the_guide_as_written_is_not_compiled_and_says_so(machine: Machine) -> None:
    """bitsandbytes, a growing cache and torch.compile, in one script: amber, not refused."""
    (preset,) = [known for known in BUNDLES if known.name == "guide-as-written"]
    model = facts("gpt2")
    granted = grant(preset, model, machine, WORK)
    assert {note.axis for note in granted.notes} == (set() if machine is H200 else {"attention"})
    checked = check(make_config(model.model, granted.choices), model, machine, WORK)
    assert (checked.requested["compile"], checked.planned["compile"]) == ("reduce-overhead", "off")
    assert (checked.planned["quantization"], checked.planned["dtype"]) == ("bnb-int8", "float16")
    (amber,) = [verdict for verdict in checked.verdicts if verdict.level == "fallback"]
    assert (amber.axis, amber.becomes) == ("compile", "off")
    assert "bitsandbytes" in amber.reason
