"""Tensors of another shape than the config asks for are refused before a worker is started: held against transformers,
which loads each checkpoint or fails on it."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.backend.models.files.test_tokenizer_files import with_file
from tests.backend.models.test_kinds import config
from tests.support.command_line import POCKET
from tokendyno.backend.models import obstacle, resolve
from tokendyno.backend.models.families import FAMILIES
from tokendyno.backend.models.files.safetensors import read_header
from tokendyno.backend.models.shape import read_shape
from tokendyno.backend.models.tensor_shapes import PREFIX, TensorShapes, sizes

Tensors = dict[str, tuple[int, ...]]
ODD: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 12,
    "max_position_embeddings": 64,
    "moe_intermediate_size": 20,
    "num_local_experts": 3,
    "num_experts": 3,
}
"""Extents that differ from each other, so that none stands in for another."""
OF_FAMILY: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": 40, "n_positions": 64},
    "bert": {"vocab_size": 40, "max_position_embeddings": 64, "intermediate_size": 48},
    "mixtral": ODD | {"intermediate_size": 20},
    "gpt_oss": ODD | {"intermediate_size": 20},
    "phi3": {"vocab_size": 40, "intermediate_size": 48},
}
BIASED = {"attention_bias": True, "mlp_bias": True}


def odd(name: str, **more: Any) -> dict[str, Any]:
    """The config of a small model of that architecture."""
    family = FAMILIES[name]
    mixed = {"layer_types": ["sliding_attention", "full_attention"]} if family.window_rule == "pattern" else {}
    return config(name) | OF_FAMILY.get(name, ODD) | mixed | more


def write(path: Path, tensors: Tensors) -> None:
    """A safetensors file of zeros."""
    header, end = {}, 0
    for name, shape in tensors.items():
        size = 2
        for extent in shape:
            size *= extent
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


def written(folder: Path) -> Tensors:
    """The tensors in a folder's file."""
    found: Tensors = {}
    read_header(folder / "model.safetensors", lambda _, name, extents: found.update({name: tuple(extents)}))
    return found


def folder_of(folder: Path, given: dict[str, Any], tensors: Tensors) -> Path:
    folder = with_file(folder, "config.json", json.dumps(given).encode())
    write(folder / "model.safetensors", tensors)
    return folder


def tensors_of(given: dict[str, Any]) -> Tensors:
    """What such a model has, for two layers and three experts, with its names in a checkpoint."""
    shape = read_shape(given, "config.json")
    found: Tensors = {}
    for pattern, extents in sizes(shape).items():
        names = [pattern.replace("*", str(layer), 1) for layer in range(shape.layers)] if "*" in pattern else [pattern]
        for name in names:
            for number in range(shape.experts) if "*" in name else [0]:
                prefix = "" if name == "lm_head.weight" else PREFIX[shape.family.layout]
                found[prefix + name.replace("*", str(number))] = extents
    stacked = (".experts.gate_up_proj", ".experts.down_proj", ".mlp.gate.weight")
    if FAMILIES[given["model_type"]].moe in ("mixtral", "qwen3_moe"):  # the other way to write the same
        keep = stacked[:2] if shape.family.moe == "qwen3_moe" else stacked
        found = {name: extents for name, extents in found.items() if not name.endswith(keep)}
    return found


def judged(folder: Path) -> str:
    """What is said of a checkpoint's tensors; "" if nothing."""
    shapes = TensorShapes(folder)
    for path in sorted(folder.glob("*.safetensors")):
        read_header(path, shapes.see)
    try:
        shapes.check()
    except ValueError as error:
        return str(error)
    return ""


def loads(folder: Path) -> bool:
    """Whether transformers loads it, as the worker does."""
    from transformers import AutoModel, AutoModelForCausalLM

    encoder = json.loads((folder / "config.json").read_text())["model_type"] == "bert"
    try:
        (AutoModel if encoder else AutoModelForCausalLM).from_pretrained(folder, use_safetensors=True)
    except Exception:
        return False
    return True


@pytest.mark.parametrize("name", FAMILIES)
def test_each_tensor_of_another_shape_is_refused_and_no_other(name: str, tmp_path: Path) -> None:
    given = odd(name)
    tensors = tensors_of(given)
    folder = folder_of(tmp_path / "m", given, tensors)
    assert judged(folder) == ""
    for tensor, extents in tensors.items():
        wrong = (*extents[:-1], extents[-1] + 1)
        write(folder / "model.safetensors", tensors | {tensor: wrong})
        assert f"the tensor {tensor!r} has the shape" in judged(folder), tensor


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_oss", "bert"])
def test_transformers_writes_these_shapes_and_loads_no_others(name: str, tmp_path: Path) -> None:
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    for more in ({}, BIASED, {"tie_word_embeddings": True}):
        given = odd(name, **{"tie_word_embeddings": False} | more)
        folder = with_file(tmp_path / f"m{len(more)}", "config.json", json.dumps(given).encode())
        made = AutoModel if name == "bert" else AutoModelForCausalLM
        made.from_config(AutoConfig.from_pretrained(folder), dtype=torch.bfloat16).save_pretrained(folder)
        prefix = PREFIX[FAMILIES[name].layout] if name == "bert" else ""
        assert {prefix + tensor: extents for tensor, extents in written(folder).items()} == tensors_of(given)
        assert judged(folder) == "" and loads(folder)
    given = odd(name, tie_word_embeddings=False)
    tensors = tensors_of(given)
    short = {tensor.removeprefix(PREFIX[FAMILIES[name].layout]): extents for tensor, extents in tensors.items()}
    for named in (tensors, short):
        folder = folder_of(tmp_path / "m", given, named)
        assert loads(folder)
        for tensor, extents in named.items():
            if ".1." not in tensor:  # one layer and one expert of each
                write(folder / "model.safetensors", named | {tensor: (*extents[:-1], extents[-1] + 1)})
                assert not loads(folder) and judged(folder), tensor


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe"])
def test_stacked_experts_and_layers_without_experts_are_known_too(name: str, tmp_path: Path) -> None:
    dense = {"mlp_only_layers": [0]} if name == "qwen3_moe" else {}
    given = odd(name, tie_word_embeddings=False, **dense)
    every = {
        pattern: extents for pattern, extents in sizes(read_shape(given, "")).items() if "experts.*" not in pattern
    }
    tensors: Tensors = {"lm_head.weight": every.pop("lm_head.weight")}
    for pattern, extents in every.items():
        if "block_sparse_moe" in pattern:
            continue
        for layer in range(2) if "*" in pattern else [0]:
            experts = ".experts." in pattern or ".mlp.gate." in pattern
            if not dense or (not experts and ".mlp." not in pattern) or experts is (layer == 1):
                tensors["model." + pattern.replace("*", str(layer))] = extents
    folder = folder_of(tmp_path / "m", given, tensors)
    assert complete(folder) and judged(folder) == ""
    for tensor, extents in tensors.items():
        write(folder / "model.safetensors", tensors | {tensor: (*extents[:-1], extents[-1] + 1)})
        assert not loads(folder) and judged(folder), tensor


def complete(folder: Path) -> bool:
    """Whether every tensor of the model is there, and no other."""
    from transformers import AutoModelForCausalLM

    _, told = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    return not told["missing_keys"] and not told["unexpected_keys"]


LLAMA = odd("llama")
HEAD = {"lm_head.weight": (41, 32)}


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({}, {"model.layers.2.mlp.up_proj.weight": (1, 1)}),  # a layer that is not there
        ({}, {"model.layers.0.self_attn.q_proj.bias": (1,)}),  # a bias that is not there
        ({}, {"model.layers.0.self_attn.rotary_emb.inv_freq": (1,)}),
        ({}, {"vision.embed_tokens.weight": (1, 1)}),
        ({}, {"model.embed_tokens.weight" + "x" * 5000: (1, 1)}),
        ({}, {"model.layers." + "9" * 5000 + ".mlp.up_proj.weight": (1, 1)}),
        ({"tie_word_embeddings": True}, HEAD),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, {"model.layers.0.mlp.up_proj.weight": (1, 1)}),
        ({"n_embd": 64}, {"model.embed_tokens.weight": (1, 1)}),  # which of the two counts is not known
    ],
)
def test_what_is_not_loaded_or_not_known_passes(change: dict[str, Any], more: Tensors, tmp_path: Path) -> None:
    given = odd("llama", tie_word_embeddings=False)
    assert judged(folder_of(tmp_path / "m", given | change, tensors_of(given) | more)) == ""


def test_the_last_shard_counts(tmp_path: Path) -> None:
    tensors = tensors_of(LLAMA)
    folder = folder_of(tmp_path / "m", LLAMA, tensors)
    (folder / "model.safetensors").rename(folder / "b.safetensors")
    wrong = {"model.embed_tokens.weight": (7, 7), "model.norm.weight": (7,)}
    write(folder / "a.safetensors", wrong)
    files = {name: "a.safetensors" if name in wrong else "b.safetensors" for name in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    assert obstacle(resolve(str(folder)), offline=True) == ""
    (folder / "b.safetensors").rename(folder / "0.safetensors")
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {name: file.replace("b.", "0.") for name, file in files.items()}})
    )
    said = obstacle(resolve(str(folder)), offline=True)
    assert said == (
        f"{folder / 'a.safetensors'}: the tensor 'model.embed_tokens.weight' has the shape 7 x 7, but config.json "
        "describes a model with 40 x 32, and 1 more differ. Weights and config.json are of two models: copy both again "
        "from one checkpoint."
    )
    assert obstacle(resolve(f"random:{folder}"), offline=True) == ""


NORMS = [f"model.layers.{n}.input_layernorm.weight" for n in range(2)]


def test_differing_tensors_are_counted_up_to_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: Tensors = dict.fromkeys(["model.norm.weight", *NORMS], (1,))
    folder = folder_of(tmp_path / "m", LLAMA, wrong)
    assert "32, and 2 more differ." in judged(folder)
    monkeypatch.setattr("tokendyno.backend.models.tensor_shapes.MAX_DIFFERING", 2)
    assert "32, and many more differ." in judged(folder)


def test_the_embedded_model_passes_and_another_config_beside_its_weights_does_not(tmp_path: Path) -> None:
    assert obstacle(resolve("pocket"), offline=True) == ""
    given = json.loads((POCKET / "config.json").read_text()) | {"hidden_size": 256}
    folder = with_file(tmp_path / "m", "config.json", json.dumps(given).encode())
    assert "has the shape" in obstacle(resolve(str(folder)), offline=True)
