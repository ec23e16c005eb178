"""Matrices that one vector meets become one: the same text, the same bytes; what cannot be joined is refused."""

import pytest
import torch
from torch import nn

from backend.errors import InputError
from backend.worker.fusion import Fused, Slice, fuse, joinable
from tests.backend.worker.test_own import greedy, own, prompt
from tests.tiny import CONFIGS, build, tiny

GROUPS = {"llama": 8, "qwen3": 8, "mistral": 8, "olmo3": 8, "gemma3_text": 8, "gpt_oss": 4, "gpt2": 0}


def held(model: nn.Module) -> int:
    return sum(p.nbytes for p in model.parameters())


@pytest.mark.parametrize("architecture", CONFIGS)
def test_the_text_and_the_bytes_stay(architecture: str) -> None:
    asked = prompt(9, 2, padded=2)
    model = build(architecture)
    before, numbers = held(model), len(list(model.parameters()))
    assert fuse(model) == GROUPS[architecture]
    assert held(model) == before
    assert (len(list(model.parameters())) < numbers) is (GROUPS[architecture] > 0)
    expected = greedy(tiny(architecture), asked)
    assert torch.equal(greedy(model, asked), expected)
    assert torch.equal(own(model, asked), expected)


def test_biases_are_joined_too() -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    model = LlamaForCausalLM(LlamaConfig(**CONFIGS["llama"], attention_bias=True, mlp_bias=True)).eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    ids = torch.tensor([[3, 4, 5]])
    expected = model(ids).logits
    assert fuse(model) == 8
    assert torch.allclose(model(ids).logits, expected, atol=1e-5)


def test_an_encoder_is_fused_as_well() -> None:
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    model = BertModel(config).eval()
    ids = torch.tensor([[3, 4, 5]])
    expected = model(ids).last_hidden_state
    assert fuse(model) == 2
    assert torch.allclose(model(ids).last_hidden_state, expected, atol=1e-6)


def test_int8_rows_of_torchao_are_joined_with_their_scales() -> None:
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    parts = [nn.Linear(64, rows, bias=False) for rows in (32, 16)]
    for part in parts:
        quantize_(nn.Sequential(part), Int8WeightOnlyConfig(set_inductor_config=False))
        assert joinable(part.weight)
    fused, x = Fused(parts), torch.randn(1, 64)
    assert torch.equal(fused(x), parts[0](x))
    assert torch.equal(Slice(fused.later)(x), parts[1](x))


def test_what_is_packed_otherwise_is_refused_in_a_sentence() -> None:
    from bitsandbytes.nn import Linear4bit

    model = build("llama")
    model.model.layers[0].self_attn.k_proj = Linear4bit(32, 16, bias=False)
    with pytest.raises(InputError, match="projections=separate"):
        fuse(model)


def test_code_that_applies_them_to_other_vectors_is_found_out() -> None:
    fused = Fused([nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)])
    fused(torch.ones(1, 4))
    with pytest.raises(RuntimeError, match="to one vector"):
        Slice(fused.later)(torch.ones(1, 4))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_it_compiles_in_one_graph() -> None:
    from backend.plan import GeneratePlan

    model = build("olmo3")
    fuse(model)
    asked = prompt(5)
    plan = GeneratePlan(cache="static", loop="own", compile_mode="default")
    assert torch.equal(own(model, asked, plan=plan), greedy(tiny("olmo3"), asked))
