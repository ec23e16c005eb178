"""Parameters and bytes against the models that transformers builds, on the meta device: nothing is allocated.

What packed weights take is held against models that are really packed: small ones of every architecture.
"""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tokendyno.backend.models import ModelFacts, catalogue, resolve
from tokendyno.backend.models.families import FAMILIES
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.predict.quantized import PACKINGS
from tokendyno.backend.predict.weights import (
    expert_bytes,
    itemsize,
    weight_bytes,
    weight_bytes_read,
)

TABLED = [entry for entry in catalogue() if json.loads(entry.config)["model_type"] in FAMILIES]
"""The others are what transformers counts of itself."""
TINY: dict[str, Any] = {
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
}
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
    learned = list(model.parameters())  # tied ones once
    buffers = [tensor for name, tensor in model.named_buffers() if not name.endswith("embed_scale")]
    return (
        sum(tensor.numel() for tensor in learned),
        sum(tensor.nbytes for tensor in learned),
        sum(tensor.nbytes for tensor in buffers),
    )


@pytest.mark.parametrize("entry", TABLED, ids=lambda entry: entry.name)
def test_every_catalogue_model_is_exact(entry: Any) -> None:
    facts = resolve(f"random:{entry.name}")
    count, size, buffers = built(json.loads(entry.config))
    assert (facts.parameters, facts.buffer_bytes) == (count, buffers)
    assert weight_bytes(facts) == size + buffers
    published = resolve(entry.name)
    unpacked = "mxfp4-dequantized" if published.quantization else "none"
    assert weight_bytes(published, "auto", unpacked) == size + buffers


@pytest.mark.parametrize("change", VARIANTS, ids=lambda change: json.dumps(change)[15:70])
def test_every_architecture_is_exact_in_its_variants(change: dict[str, Any], tmp_path: Any) -> None:
    config = TINY | change
    if config["model_type"] == "gpt2":
        config = {"n_embd": 64, "n_layer": 4, "n_head": 4, "vocab_size": 100} | change
    count, size, buffers = built(config)
    (tmp_path / "config.json").write_text(json.dumps(config))
    facts = resolve(str(tmp_path))
    assert facts.parameters == count and weight_bytes(facts, "float32") == size + buffers


def test_the_embedded_checkpoint_takes_what_its_file_holds() -> None:
    facts = resolve("pocket")
    assert weight_bytes(facts) == (facts.packed_bytes or 0) + facts.buffer_bytes
    assert weight_bytes(replace(facts, quantization="gptq", packed_bytes=1_000)) == 1_000 + facts.buffer_bytes


def test_a_dtype_scales_the_parameters_and_leaves_the_buffers_alone() -> None:
    facts = resolve("random:Qwen3-0.6B")
    assert (itemsize(facts), itemsize(facts, "float32")) == (2, 4)
    assert weight_bytes(facts, "float32") == facts.parameters * 4 + facts.buffer_bytes
    assert weight_bytes(facts, "bfloat16") == weight_bytes(facts, "float16") == weight_bytes(facts)


def matrices_built(config: dict[str, Any]) -> Counter[tuple[str, int, int]]:
    """The modules with matrices: (kind, rows, columns) -> count."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
    from transformers.pytorch_utils import Conv1D

    settings = AutoConfig.for_model(**config)
    auto = AutoModel if config["model_type"] == "bert" else AutoModelForCausalLM
    with torch.device("meta"):
        model = auto.from_config(settings)
    head, counts = model.get_output_embeddings(), Counter[tuple[str, int, int]]()
    for module in model.modules():
        for name, weight in module._parameters.items():
            if weight is None or weight.dim() < 2 or "Router" in type(module).__name__:
                continue
            if weight.dim() == 3:  # (experts, rows, columns), in gpt-oss (experts, columns, rows)
                rows, columns = weight.shape[1:] if settings.model_type != "gpt_oss" else reversed(weight.shape[1:])
                if not name.endswith("bias"):
                    counts["expert", rows, columns] += weight.shape[0]
            elif isinstance(module, torch.nn.Embedding):
                counts["embedding", *weight.shape] += 1
            elif module is head:
                counts["head", *weight.shape] += not settings.get_text_config().tie_word_embeddings
            elif isinstance(module, Conv1D):
                counts["conv1d", *reversed(weight.shape)] += 1
            elif isinstance(module, torch.nn.Linear):
                counts["linear", *weight.shape] += 1
    return +counts


@pytest.mark.parametrize("change", VARIANTS, ids=lambda change: json.dumps(change)[15:70])
def test_every_matrix_is_listed(change: dict[str, Any], tmp_path: Path) -> None:
    config = TINY | change
    if config["model_type"] == "gpt2":
        config = {"n_embd": 64, "n_layer": 4, "n_head": 4, "vocab_size": 100} | change
    (tmp_path / "config.json").write_text(json.dumps(config))
    listed = Counter[tuple[str, int, int]]()
    for matrix in resolve(str(tmp_path)).matrices:
        listed[matrix.kind, matrix.rows, matrix.columns] += matrix.count
    assert listed == matrices_built(config)


# --- packed -------------------------------------------------------------------------------------------

SMALL: dict[str, Any] = {  # multiples of what quantization requires, but not of quanto's group of 128 everywhere
    "vocab_size": 300,
    "hidden_size": 192,
    "intermediate_size": 320,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 64,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "dtype": "bfloat16",
}
GPT2 = {"n_embd": 192, "n_layer": 2, "n_head": 4, "vocab_size": 300, "n_positions": 64, "dtype": "bfloat16"}
ON_A_CPU = [name for name in PACKINGS if name not in ("torchao-int4", "mxfp4")]


def small(architecture: str, folder: Path) -> ModelFacts:
    """Facts of a small model of an architecture, with random weights."""
    shape = GPT2 if architecture == "gpt2" else SMALL | ({"num_local_experts": 4} if architecture == "gpt_oss" else {})
    (folder / "config.json").write_text(json.dumps(shape | {"model_type": architecture}))
    return resolve(f"random:{folder}")


@pytest.mark.parametrize(
    "architecture", ["llama", *(pytest.param(name, marks=pytest.mark.full) for name in ("gpt2", "gpt_oss"))]
)
def test_packed_weights_take_what_was_predicted(architecture: str, tmp_path: Path) -> None:
    """To the byte; GPT-2 has nothing that torchao and quanto know."""
    from tokendyno.backend.plan import LoadPlan
    from tokendyno.backend.worker.load.device import Observed
    from tokendyno.backend.worker.load.random_weights import load_as_checkpoint
    from tokendyno.backend.worker.prove.tensor_bytes import total_bytes, weight_tensors

    facts = small(architecture, tmp_path)
    for dtype in ("bfloat16", "float32") if architecture == "llama" else ("bfloat16",):
        dense = weight_bytes(facts, dtype)
        for choice in ON_A_CPU:
            plan = LoadPlan(facts.source, dtype=dtype, quantization=choice)
            counted = total_bytes(weight_tensors(load_as_checkpoint(plan, Observed())))
            predicted = weight_bytes(facts, dtype, choice)
            assert counted == predicted, choice
            assert (predicted == dense) == (architecture == "gpt2" and not choice.startswith("bnb"))


def test_published_mxfp4_is_predicted_to_the_byte() -> None:
    """The file, and its bytes in the kernels' modules, where biases become float32."""
    import torch
    from transformers import GptOssConfig
    from transformers.integrations.mxfp4 import Mxfp4GptOssExperts

    facts = resolve("gpt-oss-20b")
    with torch.device("meta"):
        experts = Mxfp4GptOssExperts(GptOssConfig(**json.loads(resolve("random:gpt-oss-20b").source.config_json)))
    parts = dict(experts.named_parameters())
    biases = sum(part.numel() for name, part in parts.items() if name.endswith("bias"))
    assert {part.dtype for name, part in parts.items() if name.endswith("bias")} == {torch.float32}
    # https://huggingface.co/openai/gpt-oss-20b/blob/main/model.safetensors.index.json
    file_bytes = 13_761_264_768
    assert weight_bytes(facts) == weight_bytes(facts, "auto", "mxfp4")
    assert weight_bytes(facts) == file_bytes + facts.layers * biases * 2 + facts.buffer_bytes
    packed = sum(part.nbytes for name, part in parts.items() if not name.endswith("bias"))
    scales = packed // 16  # one byte per 32 elements
    assert expert_bytes(facts) == facts.layers * (packed + scales + biases * 2)


def test_the_embedded_quantized_checkpoint_is_predicted_to_the_byte() -> None:
    facts = resolve(str(PRESETS / "models" / "pocket-mxfp4"))
    widened = sum(2 * m.count * m.rows for m in facts.matrices if m.kind == "expert")
    assert facts.packed_bytes is not None
    assert weight_bytes(facts) == facts.packed_bytes + widened + facts.buffer_bytes
    unpacked = weight_bytes(facts, "auto", "mxfp4-dequantized")
    assert unpacked == facts.parameters * 2 + facts.buffer_bytes == weight_bytes(resolve("random:pocket"))


def test_four_bits_in_tinygemms_layout_are_filled_up_and_leave_odd_layers_alone() -> None:
    llama, oss = resolve("random:Llama-3-8B"), resolve("random:gpt-oss-20b")
    in_layers = sum(m.elements for m in llama.matrices if m.kind == "linear")
    saved = weight_bytes(llama) - weight_bytes(llama, "auto", "torchao-int4")
    assert saved == pytest.approx(in_layers * (2 - 0.5 - 4 / 128))  # every width is a multiple of 1,024
    widths = {m.columns % 128 == 0 for m in oss.matrices if m.kind == "linear"}
    assert widths == {True, False}
    assert weight_bytes(oss, "auto", "bnb-nf4") < weight_bytes(oss, "auto", "torchao-int4") < weight_bytes(oss)


# --- what a token reads ---------------------------------------------------------------------------


def test_a_token_reads_one_row_of_the_embeddings() -> None:
    facts = resolve("random:Llama-3-8B")
    table = facts.vocab * facts.hidden * 2
    assert weight_bytes_read(facts) == weight_bytes(facts) - table + facts.hidden * 2
    assert weight_bytes_read(facts, batch=8) - weight_bytes_read(facts) == 7 * facts.hidden * 2


@pytest.mark.parametrize("quantization", ["none", "mxfp4"])
def test_a_token_reads_the_experts_that_it_is_routed_to(quantization: str) -> None:
    facts = resolve("random:gpt-oss-20b")
    experts = expert_bytes(facts, "auto", quantization)
    whole = weight_bytes(facts, "auto", quantization) - facts.vocab * facts.hidden * 2 + facts.hidden * 2
    assert weight_bytes_read(facts, "auto", quantization) == pytest.approx(whole - experts * 28 / 32)
    by_batch = [weight_bytes_read(facts, "auto", quantization, batch) for batch in (1, 2, 8, 1000)]
    assert by_batch == sorted(by_batch)
    assert by_batch[-1] == pytest.approx(whole + 999 * facts.hidden * 2)


@pytest.mark.parametrize(("dtype", "extra"), [("bfloat16", 2 * 100), ("float16", 0), ("float32", 0)])
def test_counted_parameters_that_stay_in_float32_take_twice_the_bytes(dtype: str, extra: int) -> None:
    uncounted = replace(resolve("random:Qwen3-0.6B"), random=False)
    counted = replace(uncounted, float32_in=(("bfloat16", 100), ("float32", 100), ("built", 7)))
    assert weight_bytes(counted, dtype) - weight_bytes(uncounted, dtype) == extra
    assert weight_bytes(replace(counted, random=True), "bfloat16") - weight_bytes(uncounted, "bfloat16") == 2 * 7


def test_the_norms_of_gpt_oss_stay_in_float32_beside_float16() -> None:
    """Two in each layer and one at the end, for a checkpoint; random weights are built in float16 throughout."""
    checkpoint = replace(resolve("random:gpt-oss-20b"), random=False, quantization=None, stored=None)
    norms = (2 * checkpoint.layers + 1) * checkpoint.hidden
    assert weight_bytes(checkpoint, "float16") - weight_bytes(checkpoint, "bfloat16") == 2 * norms
    assert weight_bytes(replace(checkpoint, random=True), "float16") == weight_bytes(checkpoint, "bfloat16")
