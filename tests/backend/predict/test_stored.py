"""Checkpoints that are packed already: their bytes from the config alone, against published files and transformers."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import POCKET
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import resolve
from tokendyno.backend.models.stored import METHODS
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.weights import quantization_on, weight_bytes, weight_bytes_read

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
    "torch_dtype": "float16",
}
MISTRAL = LLAMA | {"model_type": "mistral", "intermediate_size": 14336, "num_key_value_heads": 8}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": True, "sym": True, "damp_percent": 0.01}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
FP8 = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
TORCHAO = {"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}}}}
MXFP4 = {"quant_method": "mxfp4"}
NF4 = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}

PUBLISHED = [
    # huggingface.co/TheBloke/LLaMa-7B-GPTQ/tree/ca74eb9cdb31d0534e7a22ec64a148dac9932f5c
    (LLAMA, GPTQ, 4.28e9),
    # huggingface.co/datasets/Intel/ld_requests: TheBloke/Mistral-7B-Instruct-v0.2-AWQ, model_size 4.15
    (MISTRAL, AWQ, 4.15e9),
]


def written(folder: Path, config: dict[str, Any], quantization: dict[str, Any] | None) -> str:
    packed = {} if quantization is None else {"quantization_config": quantization}
    (folder / "config.json").write_text(json.dumps(config | packed))
    return str(folder)


@pytest.mark.parametrize(("config", "quantization", "file_bytes"), PUBLISHED, ids=["gptq", "awq"])
def test_a_published_file_is_as_large_as_its_config_says(
    config: dict[str, Any], quantization: dict[str, Any], file_bytes: float, tmp_path: Path
) -> None:
    facts = resolve(written(tmp_path, config, quantization))
    assert weight_bytes(facts) == pytest.approx(file_bytes, rel=0.01)
    assert weight_bytes_read(facts) < weight_bytes(facts) < 0.35 * weight_bytes(facts, "auto", "dequantized")


@pytest.mark.parametrize("block", [[128, 128], None], ids=["blocks", "one scale"])
@pytest.mark.parametrize("architecture", ["llama", "qwen3_moe"])
def test_fp8_takes_what_the_modules_of_transformers_take(architecture: str, block: Any, tmp_path: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.integrations.finegrained_fp8 import replace_with_fp8_linear
    from transformers.utils.quantization_config import FineGrainedFP8Config

    config = {
        "model_type": architecture,
        "hidden_size": 320,
        "intermediate_size": 640,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 100,
        "head_dim": 80,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 192,
        "dtype": "bfloat16",
    }
    settings = FineGrainedFP8Config(weight_block_size=block)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**config), dtype=torch.bfloat16)
        model = replace_with_fp8_linear(
            model, modules_to_not_convert=["lm_head"], quantization_config=settings, pre_quantized=True
        )
    size = sum(tensor.numel() * tensor.element_size() for tensor in (*model.parameters(), *model.buffers()))
    facts = resolve(written(tmp_path, config, FP8 | {"weight_block_size": block}))
    assert weight_bytes(facts) == pytest.approx(size, rel=0.001)


def test_bitsandbytes_is_packed_as_the_choice_of_that_name(tmp_path: Path) -> None:
    dense = resolve(written(tmp_path, LLAMA, None))
    for more, choice in (
        ({}, "bnb-nf4"),
        ({"bnb_4bit_use_double_quant": True}, "bnb-nf4-double"),
        ({"bnb_4bit_quant_type": "fp4"}, "bnb-fp4"),
        ({"load_in_4bit": False, "load_in_8bit": True}, "bnb-int8"),
    ):
        facts = resolve(written(tmp_path, LLAMA, NF4 | more))
        assert weight_bytes(facts) == weight_bytes(dense, "auto", choice) < weight_bytes(dense)


def test_fp8_is_made_dense_where_there_is_no_fp8_arithmetic(tmp_path: Path) -> None:
    facts = resolve(written(tmp_path, LLAMA, FP8))
    dense = weight_bytes(resolve(written(tmp_path, LLAMA, None)))
    ampere, hopper = (Setup(device="cuda", capability=capability) for capability in ((8, 0), (9, 0)))
    assert weight_bytes(facts, "auto", quantization_on(facts, Setup())) == dense
    assert weight_bytes(facts, "auto", quantization_on(facts, ampere)) == dense
    assert weight_bytes(facts, "auto", quantization_on(facts, hopper)) < 0.6 * dense


def test_what_is_unpacked_at_the_first_step_counts_as_dense(tmp_path: Path) -> None:
    facts = resolve(written(tmp_path, LLAMA, {"quant_method": "compressed-tensors", "ignore": ["lm_head"]}))
    assert "as much memory as dense" in facts.note
    assert weight_bytes(facts) == weight_bytes(resolve(written(tmp_path, LLAMA, None)))


@pytest.mark.parametrize(
    ("quantization", "as_in_the_file"),
    [(GPTQ, True), (FP8, True), ({"quant_method": "compressed-tensors", "ignore": ["lm_head"]}, False), (None, False)],
    ids=["gptq", "fp8", "compressed-tensors", "dense"],
)
def test_files_tell_the_bytes_of_what_stays_as_it_is_in_them(
    quantization: dict[str, Any] | None, as_in_the_file: bool, tmp_path: Path
) -> None:
    facts = resolve(written(tmp_path, LLAMA, quantization))
    beside_a_file = replace(facts, packed_bytes=1_000, buffer_bytes=24)
    assert (weight_bytes(beside_a_file) == 1_024) is as_in_the_file


UNKNOWN: list[dict[str, Any]] = [
    {"quant_method": "hqq"},
    {"quant_method": "aqlm"},
    GPTQ | {"lm_head": True},
    NF4 | {"llm_int8_skip_modules": ["embed_tokens"]},
    {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": []},
    TORCHAO | {"modules_to_not_convert": ["embed_tokens"]},
    TORCHAO | {"include_input_output_embeddings": True},
    {"quant_method": "compressed-tensors", "use_optimized_inference": True},
    {"quant_method": "mxfp4"},
    GPTQ | {"bits": 5},
    GPTQ | {"group_size": "many"},
    GPTQ | {"dynamic": {"-:.*down.*": {}}},
    AWQ | {"version": "exllama"},
    AWQ | {"modules_to_not_convert": ["model.layers.0.self_attn"]},
    FP8 | {"weight_block_size": [128, "x"]},
    {"quant_method": "bitsandbytes"},
    {"quant_method": "torchao", "quant_type": {"default": {"_type": "UIntXWeightOnlyConfig"}}},
]


@pytest.mark.parametrize("quantization", UNKNOWN, ids=lambda value: str(value)[:50])
def test_an_unknown_format_is_refused(quantization: dict[str, Any], tmp_path: Path) -> None:
    said = re.escape(f"are not known here (quant_method={quantization.get('quant_method', '')}")
    with pytest.raises(InputError, match=said):
        resolve(written(tmp_path, LLAMA, quantization))


NOT_LOADED: list[tuple[dict[str, Any], str]] = [
    ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}, "'modelopt', which transformers 5.22"),
    ({"quantization_config": {"bits": 4}}, "names no quant_method"),
    ({"quantization": {"group_size": 64, "bits": 4}}, "its block 'quantization' says"),
    ({"compression_config": {"format": "pack-quantized"}}, "its block 'compression_config' says"),
]


@pytest.mark.parametrize(("block", "said"), NOT_LOADED, ids=lambda value: str(value)[:50])
def test_weights_that_transformers_would_take_for_dense_are_refused_though_they_are_here(
    block: dict[str, Any], said: str, tmp_path: Path
) -> None:
    shutil.copytree(POCKET, tmp_path, dirs_exist_ok=True)
    config = json.loads((POCKET / "config.json").read_text())
    with pytest.raises(InputError, match=said):
        resolve(written(tmp_path, config | block, None))
    assert resolve(f"random:{written(tmp_path, config | block, None)}").random


def test_the_methods_that_transformers_knows_are_known_here() -> None:
    from transformers.quantizers.auto import AUTO_QUANTIZATION_CONFIG_MAPPING

    assert {name.removesuffix("_4bit").removesuffix("_8bit") for name in AUTO_QUANTIZATION_CONFIG_MAPPING} == {*METHODS}


@pytest.mark.parametrize(
    ("quantization", "dtype"),
    [(MXFP4, "bfloat16"), (FP8, "bfloat16"), (GPTQ, "float16"), (AWQ, "float16"), (None, "float32")],
    ids=["mxfp4", "fp8", "gptq", "awq", "dense"],
)
def test_a_packed_checkpoint_without_a_dtype_computes_in_a_half_precision(
    quantization: dict[str, Any] | None, dtype: str, tmp_path: Path
) -> None:
    config = {key: value for key, value in LLAMA.items() if key != "torch_dtype"}
    if quantization == MXFP4:
        config |= {"model_type": "gpt_oss", "num_local_experts": 4}
    folder = written(tmp_path, config, quantization)
    assert resolve(folder).dtype == resolve(f"random:{folder}").dtype == dtype


def test_the_text_models_own_quantization_counts(tmp_path: Path) -> None:
    text = {"model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 2, "quantization_config": NF4}
    config = {"model_type": "gemma3", "text_config": text, "vision_config": {"model_type": "siglip_vision_model"}}
    facts = resolve(written(tmp_path, config, None))
    assert facts.quantization == "bitsandbytes" and facts.stored is not None and facts.stored.choice == "bnb-nf4"


def test_packed_experts_that_transformers_cannot_load_are_refused(tmp_path: Path) -> None:
    config = LLAMA | {"model_type": "mixtral", "num_hidden_layers": 2}
    with pytest.raises(InputError, match="experts"):
        resolve(written(tmp_path, config, GPTQ))
    assert resolve(written(tmp_path, config, FP8)).stored
