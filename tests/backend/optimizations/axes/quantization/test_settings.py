"""The settings of every quantization, as a script prints them: what the user's own code would have to say."""

import pytest
import torch

from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.optimizations.axes.quantization.axis import AXIS, COMPUTE_DTYPE, quantization_config, values_text
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.script.parts import Script

SETTINGS = {
    "none": "",
    "bnb-int8": "BitsAndBytesConfig(load_in_8bit=True)",
    "bnb-nf4": 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float16)',
    "bnb-nf4-double": 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", '
    "bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float16)",
    "bnb-fp4": 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="fp4", bnb_4bit_compute_dtype=torch.float16)',
    "bnb-fp4-double": 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="fp4", '
    "bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float16)",
    "torchao-int8": "TorchAoConfig(Int8WeightOnlyConfig(set_inductor_config=False))",
    "torchao-fp8": "TorchAoConfig(Float8WeightOnlyConfig(set_inductor_config=False))",
    "torchao-int4": 'TorchAoConfig(Int4WeightOnlyConfig(group_size=128, int4_packing_format="tile_packed_to_4d", '
    "set_inductor_config=False))",
    "quanto-int8": 'QuantoConfig(weights="int8")',
    "quanto-int4": 'QuantoConfig(weights="int4")',
    "mxfp4": "Mxfp4Config()",
    "mxfp4-dequantized": "Mxfp4Config(dequantize=True)",
}


def prepared(name: str, source: ModelSource) -> Script:
    script = Script()
    AXIS.write(script, Plan(LoadPlan(source, device="cuda", dtype="float16", quantization=name)))
    return script


@pytest.mark.parametrize("name", SETTINGS)
def test_a_script_quantizes_with_these_settings(name: str) -> None:
    script = prepared(name, ModelSource("folder", path="/m"))
    said = "".join("".join(script.prepare).split()).replace(",)", ")")
    wanted = "".join(SETTINGS[name].split())
    assert said == (f"quantization_config={wanted}" if wanted else "")
    assert ("quantization_config" in script.load) is bool(wanted)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("none", "mxfp4-dequantized")])
def test_values_are_those_of_the_library_given_or_not(name: str) -> None:
    load = LoadPlan(ModelSource("folder", path="/m"), device="cuda", quantization=name)
    built, text = quantization_config(load), values_text(load, "float16")
    assert built is not None and "output head" in text
    config = built.build(**{COMPUTE_DTYPE: torch.float16})
    config = getattr(config, "quant_type", config)
    values = dict(one.split("=") for one in text.split(";")[0].split(", "))
    assert values and values == {one: str(getattr(config, one)).removeprefix("torch.") for one in values}


def test_every_choice_has_its_settings() -> None:
    assert list(SETTINGS) == [one.name for axis in all_axes() if axis.name == "quantization" for one in axis.choices]


def test_a_gguf_file_is_dequantized_whatever_kernels_the_hub_has() -> None:
    script = prepared("none", ModelSource("gguf", path="/m.gguf"))
    assert script.prepare == ["quantization_config = GgufConfig(dequantize=True)"]


@pytest.mark.parametrize(
    ("name", "kind", "random"),
    [
        ("mxfp4", "random", True),
        ("mxfp4-dequantized", "random", True),
        ("mxfp4", "folder", False),
        ("bnb-int8", "random", False),
    ],
)
def test_only_random_experts_are_made_in_mxfp4(name: str, kind: str, random: bool) -> None:
    script = prepared(name, ModelSource(kind, path="/m", config_json="{}"))  # type: ignore[arg-type]
    assert ("experts" in script.state) is random and bool(script.empty) is random
