"""What can be added to an arm: grouped, with costs and reasons, and found by the words that people type."""

import functools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.palette import GROUPS, Entry, palette
from tokendyno.backend.arms.parse import make_config, parse_arm
from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.optimizations import prompt_axes


@pytest.fixture
def on_cpu() -> list[Entry]:
    return palette(facts("pocket"), CPU)


def titles_with(entries: Sequence[Entry], word: str) -> set[str]:
    """Titles in whose entry a word stands, as the page searches."""
    return {
        e.title
        for e in entries
        if word in " ".join((e.title, e.name, e.axis, e.group, e.summary, e.axis_name, e.words, *e.aliases)).lower()
    }


def test_every_choice_but_the_defaults_is_in_it_once(on_cpu: list[Entry]) -> None:
    single = [entry for entry in on_cpu if entry.choices and not entry.whole and ":" not in entry.name]
    offered = [(entry.axis, entry.title) for entry in single]
    assert sorted(offered) == sorted(
        (axis.title, choice.title)
        for axis in prompt_axes()
        for choice in axis.choices
        if choice.name != axis.default and not choice.example
    )


def test_a_value_of_a_choice_is_an_entry_of_its_own() -> None:
    (sinks,) = [entry for entry in palette(facts("gpt-oss-20b"), H200) if "sinks=off" in entry.title]
    assert (
        sinks.state == "runs"
        and sinks.choices == {"attention": "eager:sinks=off"}
        and sinks.title == "eager, sinks=off"
    )
    compiled = [entry for entry in palette(facts("pocket"), CPU) if entry.axis_name == "compile"]
    (whole,) = [entry for entry in compiled if entry.name == "default:fullgraph=true"]
    assert whole.argument == 'compile_config=CompileConfig(mode="default", fullgraph=True)'
    written = [entry.name for entry in compiled]
    assert "reduce-overhead:fullgraph=true" not in written
    assert not [name for name in written if name.endswith("org/name")]


def test_bundles_and_presets_of_several_choices_are_in_it_whole(on_cpu: list[Entry]) -> None:
    wanted = {preset.title for preset in arm_presets() if preset.bundle or len(preset.choices) > 1}
    baseline = {preset.title for preset in arm_presets() if not preset.choices and not preset.bundle}
    assert {entry.title for entry in on_cpu if entry.whole} == wanted | baseline and len(wanted) > 3


def test_groups_follow_one_another_and_what_cannot_run_comes_last_in_its_group(on_cpu: list[Entry]) -> None:
    order = [list(GROUPS.values()).index(entry.group) for entry in on_cpu]
    assert order == sorted(order) and set(order) == set(range(len(GROUPS)))
    for group in GROUPS.values():
        states = [entry.state == "cannot run" for entry in on_cpu if entry.group == group]
        assert states == sorted(states)


@pytest.mark.parametrize(
    ("word", "titles"),
    [
        ("spec", {"prompt lookup"}),
        ("int8", {"torchao int8", "bitsandbytes int8", "quanto int8"}),
        ("fast", {"static", "custom", "Lowest latency"}),
        ("speed", {"static", "custom", "sdpa"}),
        ("memory", {"bitsandbytes nf4", "Lowest memory"}),
    ],
)
def test_what_people_type_finds_what_it_should(on_cpu: list[Entry], word: str, titles: set[str]) -> None:
    assert titles <= titles_with(on_cpu, word)


@functools.cache
def everywhere() -> list[Entry]:
    """What the palette holds on two machines, and with a model in float32."""
    entries = [entry for machine in (CPU, H200) for entry in palette(facts("Qwen3-0.6B"), machine)]
    return [*entries, *palette(replace(facts("pocket"), dtype="float32"), CPU)]


@pytest.mark.parametrize(
    ("name", "axis", "argument"),
    [
        ("attn_implementation", "attention", 'attn_implementation="sdpa"'),
        ("torch_dtype", "dtype", "dtype=torch.float16"),
        ("fp16", "dtype", "dtype=torch.float16"),
        ("load_in_4bit", "quantization", 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="fp4"'),
        ("load_in_8bit", "quantization", "quantization_config=BitsAndBytesConfig(load_in_8bit=True)"),
        ("cache_implementation", "cache", "past_key_values=StaticCache("),
        ("compile_config", "compile", 'compile_config=CompileConfig(mode="reduce-overhead")'),
        ("prompt_lookup_num_tokens", "speculation", "prompt_lookup_num_tokens=5"),
        ("prefill_chunk_size", "prefill", "prefill_chunk_size=2048"),
        ("experts_implementation", "experts", 'experts_implementation="eager"'),
        ("use_kernels", "kernels", "model.set_use_kernels(True"),
        ("device_map", "parallel", 'device_map="auto"'),
        ("tp_plan", "parallel", "distributed_config=DistributedConfig(tp_size=2)"),
        ("enable_expert_parallel", "parallel", "distributed_config=DistributedConfig(tp_size=2, ep_size=2"),
        ("generate_batch", "batching", "continuous_batching_config=ContinuousBatchingConfig("),
        ("continuous", "batching", "continuous_batching_config=ContinuousBatchingConfig("),
        ("use_cuda_graph", "batch_graphs", "ContinuousBatchingConfig(use_cuda_graph=True)"),
        ("max_batch_tokens", "batch_tokens", "ContinuousBatchingConfig(max_batch_tokens="),
        ("gguf", "", ""),
        ("awq", "", ""),
    ],
)
def test_names_of_transformers_are_found_and_answered_with_what_it_takes_today(
    name: str, axis: str, argument: str
) -> None:
    """On the page as on the command line, whatever runs here."""
    named = [one for one in everywhere() if name.lower() in " ".join((*one.aliases, one.name, one.words)).lower()]
    assert [one for one in named if one.axis_name == axis and argument in one.argument]
    with pytest.raises(InputError) as refused:
        parse_arm("m", f"{name}=True")
    assert (f"Here it is the axis {axis}: write {axis}=" if axis else " packed so " * (name != "gguf")) in str(
        refused.value
    )


def test_an_entry_says_why_it_cannot_run_and_one_that_runs_is_not_refused(on_cpu: list[Entry]) -> None:
    assert all(entry.why for entry in on_cpu if entry.state != "runs")
    for name, machine in (("pocket", CPU), ("Llama-3-8B", H200)):
        model = facts(name)
        for entry in palette(model, machine):
            refused = check(make_config(model.model, entry.choices), model, machine, Workload(prompt="?")).blocked
            of_axes = [verdict for verdict in refused if verdict.axis != "model"]
            assert bool(of_axes) == (entry.state == "cannot run") or entry.whole, entry


def test_what_a_choice_requires_is_set_with_it(on_cpu: list[Entry]) -> None:
    (loop,) = [entry for entry in on_cpu if entry.title == "custom"]
    assert loop.choices == {"cache": "static", "loop": "own"} and loop.why.startswith("with cache=static")
