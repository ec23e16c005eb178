"""A second model is made of transformers' file of the architecture, and holds the same tensors."""

import copy
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import transformers.models.llama.modeling_llama as llama_code
from torch._dynamo.testing import CompileCounter
from transformers import FalconConfig, FalconForCausalLM, masking_utils, modeling_rope_utils

from backend.models.source import ModelSource
from backend.worker.patch.projections import fuse
from backend.worker.prove.plain_code import Unlike, as_imported, config_of, plain_copy
from tests.support.tiny_models import CONFIGS, tiny

IDS = torch.arange(24)[None] * 7 % 97


def logits(model: Any) -> Any:
    with torch.inference_mode():
        return model(input_ids=IDS).logits


@pytest.mark.parametrize("architecture", CONFIGS)
def test_it_computes_the_same_with_the_same_tensors(architecture: str) -> None:
    model = tiny(architecture)
    plain = plain_copy(model)
    assert type(plain) is not type(model)
    assert [one.data_ptr() for one in plain.parameters()] == [one.data_ptr() for one in model.parameters()]
    torch.testing.assert_close(logits(plain), logits(model), rtol=1e-4, atol=1e-4)


def test_its_attention_is_written_out_whatever_the_model_has() -> None:
    model = tiny("llama", "sdpa")
    assert plain_copy(model).config._attn_implementation == "eager"
    assert model.config._attn_implementation == "sdpa", "the model's own config has changed"


def test_attention_that_layers_compute_themselves_keeps_its_implementation() -> None:
    """Falcon's eager attention adds the position biases (ALiBi) a second time, beside those in the mask."""
    size = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = FalconForCausalLM._from_config(FalconConfig(**size, alibi=True), attn_implementation="sdpa").eval()
    torch.testing.assert_close(logits(plain_copy(model)), logits(model))


def test_code_that_was_compiled_before_is_not_compiled_again() -> None:
    """Dynamo's guards look into transformers' registry of classes, where a second model puts its own."""
    torch.compiler.reset()
    counter, model = CompileCounter(), tiny("llama")
    compiled = torch.compile(model, backend=counter)
    logits(compiled)
    first = counter.frame_count
    logits(plain_copy(model))
    logits(compiled)
    assert counter.frame_count == first > 0


def broken(*args: Any, **more: Any) -> Any:
    raise AssertionError("the plain model calls what was patched")


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (llama_code, "eager_attention_forward"), (llama_code.LlamaMLP, "forward"), (llama_code.LlamaRMSNorm, "forward"),
        (llama_code, "apply_rotary_pos_emb"), (torch.nn.Linear, "forward"),
        (torch.nn.functional, "scaled_dot_product_attention"),
    ],
)  # fmt: skip
def test_it_calls_nothing_that_was_patched(where: Any, name: str) -> None:
    wanted = logits(tiny("llama"))
    with mock.patch.object(where, name, broken):
        torch.testing.assert_close(logits(plain_copy(tiny("llama"))), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("where", "name"),
    [
        (torch.nn.functional, "silu"), (torch.nn.functional, "softmax"), (torch, "matmul"),
        (masking_utils, "causal_mask_function"), (modeling_rope_utils, "_compute_default_rope_parameters"),
    ],
)  # fmt: skip
def test_functions_that_every_file_calls_are_the_first_ones(where: Any, name: str) -> None:
    wanted, plain = logits(tiny("llama")), plain_copy(tiny("llama"))
    first = getattr(where, name, None)
    with mock.patch.object(where, name, broken, create=first is None):
        with as_imported():
            assert first is None or getattr(where, name) is first
            torch.testing.assert_close(logits(plain), wanted, rtol=1e-4, atol=1e-4)
        assert getattr(where, name) is broken, "the patch is gone afterwards"


def test_what_holds_no_tensor_is_new() -> None:
    model = copy.deepcopy(tiny("llama"))
    wanted = logits(model)
    model.model.layers[1].mlp.act_fn = torch.nn.Tanh()
    torch.testing.assert_close(logits(plain_copy(model)), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("architecture", ["llama", "gemma3_text"])
def test_frequencies_come_from_the_config(architecture: str) -> None:
    model = copy.deepcopy(tiny(architecture))
    wanted = logits(model)
    for name, buffer in model.model.rotary_emb.named_buffers():
        assert "inv_freq" in name
        buffer.mul_(0.5)
    torch.testing.assert_close(logits(plain_copy(model)), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["random", "folder"])
def test_a_config_that_was_changed_is_read_anew(kind: Any, tmp_path: Path) -> None:
    model = copy.deepcopy(tiny("mistral"))
    wanted = logits(model)
    model.save_pretrained(tmp_path)
    text = (tmp_path / "config.json").read_text()
    source = ModelSource(kind, str(tmp_path), config_json=text if kind == "random" else "")
    model.config.sliding_window = None
    assert not torch.allclose(logits(model), wanted, rtol=1e-2)
    plain = plain_copy(model, config_of(source, None if kind == "random" else tmp_path))
    torch.testing.assert_close(logits(plain), wanted, rtol=1e-4, atol=1e-4)


def test_a_config_of_another_kind_is_not_the_model_s() -> None:
    assert config_of(ModelSource("gguf", "x"), None) is None
    model = tiny("llama")
    plain = plain_copy(model, tiny("gpt2").config)
    assert plain.config.model_type == "llama"


def test_hooks_and_methods_of_the_model_s_modules_are_not_its_own() -> None:
    model = copy.deepcopy(tiny("llama"))
    wanted = logits(model)
    model.model.layers[0].self_attn.o_proj.register_forward_pre_hook(broken)
    model.model.layers[1].mlp.forward = broken
    torch.testing.assert_close(logits(plain_copy(model)), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("architecture", ["llama", "gpt_oss"])
def test_fused_projections_are_taken_apart(architecture: str) -> None:
    model = copy.deepcopy(tiny(architecture))  # q, k and v of gpt-oss have biases
    wanted = logits(model)
    assert fuse(model)
    plain = plain_copy(model)
    attention = plain.model.layers[0].self_attn
    assert [type(one).__name__ for one in (attention.q_proj, attention.k_proj, attention.v_proj)] == ["Linear"] * 3
    torch.testing.assert_close(logits(plain), wanted, rtol=1e-4, atol=1e-4)


class Packed(torch.nn.Module):  # type: ignore[misc]
    """A linear layer of another kind."""

    def __init__(self, own: Any) -> None:
        super().__init__()
        self.register_buffer("scale", own.weight.detach().abs().amax() / 127)
        self.register_buffer("codes", (own.weight.detach() / self.scale).round().to(torch.int8))

    def forward(self, x: Any) -> Any:
        return x @ (self.codes * self.scale).T


def test_what_multiplies_with_packed_weights_is_left_as_it_is() -> None:
    model = copy.deepcopy(tiny("llama"))
    attention = model.model.layers[0].self_attn
    attention.q_proj = packed = Packed(attention.q_proj)
    wanted = logits(model)
    plain = plain_copy(model)
    assert plain.model.layers[0].self_attn.q_proj is packed
    torch.testing.assert_close(logits(plain), wanted, rtol=1e-4, atol=1e-4)


class Faster(torch.nn.Linear):  # type: ignore[misc]
    """Of another name, with plain numbers."""


@pytest.mark.parametrize("part", ["self_attn", "self_attn.q_proj", "mlp"])
def test_a_module_of_another_name_is_no_reference_of_its_own(part: str) -> None:
    """What it gives would be held against itself."""
    model = copy.deepcopy(tiny("llama"))
    theirs = model.model.layers[1].get_submodule(part)
    theirs.__class__ = Faster if part.endswith("q_proj") else type("Faster", (type(theirs),), {})
    if part == "self_attn":
        theirs.o_proj = Packed(theirs.o_proj)  # a packed part of it makes no difference
    with pytest.raises(Unlike, match=rf"model\.layers\.1\.{part} is a Faster and no "):
        plain_copy(model)


def test_a_model_without_a_part_of_its_class_is_none_of_it() -> None:
    model = copy.deepcopy(tiny("llama"))
    del model.model.layers[3].post_attention_layernorm
    with pytest.raises(Unlike, match=r"LlamaDecoderLayer has no model\.layers\.3\.post_attention_layernorm"):
        plain_copy(model)
