"""Parameters and bytes against the models that transformers builds, on the meta device: nothing is allocated."""

import json
from typing import Any

import pytest

from backend.errors import InputError
from backend.models import catalogue, resolve
from backend.predict import itemsize, parameters, weight_bytes

TINY: dict[str, Any] = {
    "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 4,
    "num_attention_heads": 4, "num_key_value_heads": 2, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
}  # fmt: skip
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}

VARIANTS: list[dict[str, Any]] = [
    {"model_type": "llama"},
    {
        "model_type": "llama",
        "attention_bias": True,
        "mlp_bias": True,
        "head_dim": 32,
        "tie_word_embeddings": True,
    },
    {"model_type": "mistral"},
    {"model_type": "mistral", "head_dim": 8},
    {"model_type": "mixtral", "num_local_experts": 4},
    {"model_type": "qwen2"},
    {"model_type": "qwen2", "tie_word_embeddings": True},
    {"model_type": "qwen3", "head_dim": 32, "attention_bias": True},
    {"model_type": "qwen3_moe", **EXPERTS},
    {"model_type": "qwen3_moe", **EXPERTS, "mlp_only_layers": [1], "decoder_sparse_step": 2},
    {"model_type": "olmo2"},
    {"model_type": "olmo3"},
    {"model_type": "olmo3", "attention_bias": True, "layer_types": ["full_attention"] * 4},
    {"model_type": "smollm3"},
    {"model_type": "smollm3", "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False},
    {"model_type": "phi3"},
    {
        "model_type": "phi3",
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
    },
    {"model_type": "gemma", "head_dim": 8},
    {"model_type": "gemma2", "head_dim": 8},
    {"model_type": "gemma3_text", "head_dim": 8, "attention_bias": True},
    {"model_type": "gpt_oss", "head_dim": 8, **EXPERTS},
    {"model_type": "gpt_oss", "head_dim": 8, **EXPERTS, "attention_bias": False},
    {"model_type": "gpt2", "n_inner": 80},
    {"model_type": "gpt2", "tie_word_embeddings": False, "n_positions": 32},
    {"model_type": "bert", "type_vocab_size": 3, "max_position_embeddings": 32},
]


def built(config: dict[str, Any]) -> tuple[int, int, int]:
    """(parameters, their bytes, bytes of buffers) of the model that transformers builds."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    settings = AutoConfig.for_model(**config)
    auto = AutoModel if config["model_type"] == "bert" else AutoModelForCausalLM
    with torch.device("meta"):
        model = auto.from_config(settings, dtype=getattr(torch, config.get("dtype", "float32")))
    model.tie_weights()
    learned = list(model.parameters())  # each once, tied or not
    buffers = [tensor for name, tensor in model.named_buffers() if not name.endswith("embed_scale")]
    return (
        sum(tensor.numel() for tensor in learned),
        sum(tensor.nbytes for tensor in learned),
        sum(tensor.nbytes for tensor in buffers),
    )


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_every_catalogue_model_is_exact(entry: Any) -> None:
    facts = resolve(f"random:{entry.name}")
    count, size, buffers = built(json.loads(entry.config))
    assert (facts.parameters, facts.buffer_bytes) == (count, buffers)
    assert weight_bytes(facts) == weight_bytes(resolve(entry.name)) == size + buffers


@pytest.mark.parametrize("change", VARIANTS, ids=lambda change: json.dumps(change)[15:70])
def test_every_architecture_is_exact_in_its_variants(change: dict[str, Any], tmp_path: Any) -> None:
    config = TINY | change
    if config["model_type"] == "gpt2":
        config = {"n_embd": 64, "n_layer": 4, "n_head": 4, "vocab_size": 100} | change
    count, size, buffers = built(config)
    assert parameters(config) == count
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert weight_bytes(resolve(str(tmp_path)), "float32") == size + buffers


def test_the_embedded_checkpoint_takes_what_its_file_holds() -> None:
    facts = resolve("pocket")
    assert weight_bytes(facts) == weight_bytes(facts, packed=True) == (facts.packed_bytes or 0) + facts.buffer_bytes


def test_a_dtype_scales_the_parameters_and_leaves_the_buffers_alone() -> None:
    facts = resolve("random:Qwen3-0.6B")
    assert (itemsize(facts), itemsize(facts, "float32")) == (2, 4)
    assert weight_bytes(facts, "float32") == facts.parameters * 4 + facts.buffer_bytes
    assert weight_bytes(facts, "bfloat16") == weight_bytes(facts, "float16") == weight_bytes(facts)


@pytest.mark.parametrize(("name", "gigabytes"), [("gpt-oss-20b", 13.761), ("gpt-oss-120b", 65.249)])
def test_mxfp4_packs_the_experts_only(name: str, gigabytes: float) -> None:
    # https://huggingface.co/openai/gpt-oss-20b/blob/main/model.safetensors.index.json: total_size 13,761,264,768
    assert weight_bytes(resolve(name), packed=True) / 1e9 == pytest.approx(gigabytes, abs=1e-3)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="Did you mean 'bfloat16'"):
        weight_bytes(resolve("gpt2"), "bfloat")
    with pytest.raises(InputError, match="not packed"):
        weight_bytes(resolve("gpt2"), packed=True)
