"""An arm as text becomes a Config; whatever is wrong in it is named, with the nearest valid name."""

import itertools

import pytest

from tokendyno.backend.arms.parse import make_config, parse_arm
from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.config import Config
from tokendyno.backend.errors import InputError
from tokendyno.backend.optimizations import all_axes


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("", ()),
        ("baseline", ()),
        ("static", (("cache", "static"),)),
        ("compiled", (("cache", "static"), ("compile", "default"))),
        ("cache=dynamic,attention=auto", ()),
        (" cache = static , compile=default ", (("cache", "static"), ("compile", "default"))),
        ("compile=default:fullgraph=true;backend=eager", (("compile", "default:backend=eager;fullgraph=true"),)),
        ("compile=default:fullgraph=false", (("compile", "default"),)),
        ("compile=default,cache=static", (("cache", "static"), ("compile", "default"))),
    ],
)
def test_reads(text: str, choices: tuple[tuple[str, str], ...]) -> None:
    assert parse_arm("pocket", text) == Config("pocket", choices)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("atention=eager", "Unknown axis 'atention'. Did you mean 'attention'? Valid: "),
        ("attention=spda", "Unknown attention choice 'spda'. Did you mean 'sdpa'? Valid: auto, eager, "),
        ("dtype=bf16", "Did you mean 'bfloat16'?"),
        ("attn_implementation=sdpa", "Here it is the axis attention: write attention=sdpa."),
        ("cache_implementation=quantized", "Here it is the axis cache: write cache=choice (choices: dynamic, "),
        ("load_in_8bit=True", "write quantization=bnb-int8."),
        ("generate_batch", "Here it is the axis batching: write batching=continuous."),
        ("flash_attention_2", "write attention=flash_attention_2."),
        ("reduce-overhead", "write compile=reduce-overhead."),
        ("gguf", "Unknown preset 'gguf'. A GGUF file is a model: write the path"),
        ("awq=True", "Unknown axis 'awq'. AWQ and GPTQ are formats of a checkpoint"),
        ("low_cpu_mem_usage=True", "In transformers 5.22: ignored"),
        ("unwindow", "There is no preset 'unwindow'. Did you mean 'unwindowed'?"),
        ("cache", "'cache' is an axis. Write cache=choice; choices: dynamic, "),
        ("cache=", "Cannot parse 'cache='"),
        ("cache=static,", "Cannot parse ''"),
        ("cache=static,cache=static", "Axis 'cache' appears twice"),
        ("cache=static," * 10_000, "Axis 'cache' appears twice in 'cache=static,cache"),
        ("=" * 100_000, "... (100,000 characters)'. Write axis=choice"),
        ("cache=static,baseline", "An arm has one preset, which comes first: write baseline,axis=choice."),
        ("baseline,compiled", "An arm has one preset, which comes first: write compiled,axis=choice."),
        ("compile=default:full=true", "Unknown value of default 'full'. Did you mean 'fullgraph'?"),
        ("compile=default:fullgraph=yes", "Unknown fullgraph of default 'yes'. Valid: false, true."),
        ("compile=default:fullgraph=true;fullgraph=false", "each key once."),
        ("compile=default:", "Write default:key=value;key=value"),
        ("compile=max-autotune:backend=eager", "Unknown value of max-autotune 'backend'."),
        ("compile=off:backend=eager", "compile=off takes no values."),
    ],
)
def test_refuses(text: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        parse_arm("pocket", text)
    assert says in str(refused.value) and len(str(refused.value)) < 700


def test_neither_order_nor_defaults_change_an_id() -> None:
    choices = {"cache": "static", "compile": "default", "dtype": "float32"}
    for order in itertools.permutations(choices):
        assert make_config("pocket", {name: choices[name] for name in order}) == make_config("pocket", choices)
    assert make_config("pocket", {**choices, "attention": "auto"}).id == make_config("pocket", choices).id


def test_every_choice_of_every_axis_can_be_written_and_only_the_default_is_left_out() -> None:
    for axis in all_axes():
        for choice in axis.choices:
            config = parse_arm("pocket", f"{axis.name}={choice.name}")
            assert config.choices == (() if choice.name == axis.default else ((axis.name, choice.name),))


def test_a_preset_is_the_same_as_its_choices_written_out() -> None:
    for preset in arm_presets():
        written = ",".join(f"{axis}={choice}" for axis, choice in preset.choices.items())
        assert parse_arm("pocket", preset.name) == parse_arm("pocket", written)
