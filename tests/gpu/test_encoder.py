"""Captured passes of an encoder on a GPU: what they compute, the memory of their graphs, what cannot be captured."""

from typing import Any

import pytest
import torch

from tokendyno.backend.worker.loop.cuda_graph import CapturedPasses, without_idle_mask

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


def small_bert() -> Any:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=4, num_attention_heads=4, initializer_range=0.2
    )
    return BertModel(config).to("cuda", torch.bfloat16).eval()


def text(tokens: int, padded: int = 0, batch: int = 2) -> dict[str, Any]:
    """Random ids, the last ones of the last row padding."""
    ids = torch.randint(1, 30_000, (batch, tokens), device="cuda")
    mask = torch.ones_like(ids)
    mask[-1, tokens - padded :] = 0
    return {"input_ids": ids, "attention_mask": mask}


def test_graphs_of_several_lengths_compute_what_the_model_does_in_any_order() -> None:
    """Texts of any length and padding, again and again: graphs share the memory of what they need on the way."""
    model = small_bert()
    captured = CapturedPasses(model)
    with torch.inference_mode():
        for tokens, padded in ((256, 0), (64, 0), (128, 5), (64, 60), (256, 0), (128, 127), (64, 0), (128, 0)):
            given = text(tokens, padded)
            states = captured(**without_idle_mask(given))[0].clone()
            counted = given["attention_mask"].bool()
            torch.testing.assert_close(states[counted], model(**given)[0][counted], atol=0.05, rtol=0.05)


def test_graphs_of_several_lengths_need_the_memory_of_the_largest() -> None:
    model = small_bert()
    with torch.inference_mode():
        model(**text(512, batch=32))  # workspaces of the libraries
        held = []
        for lengths in ((512,), (512, 256, 128, 64)):
            torch.cuda.empty_cache()
            before = torch.cuda.memory_reserved()
            captured = CapturedPasses(model)
            for tokens in lengths:
                captured(**without_idle_mask(text(tokens, batch=32)))
            torch.cuda.empty_cache()
            held.append(torch.cuda.memory_reserved() - before)
            del captured
    assert 32 << 20 < held[0] <= held[1] < 1.4 * held[0], [round(one / (1 << 20)) for one in held]


def test_a_pass_that_asks_the_device_is_no_captured_one() -> None:
    def asking(input_ids: Any) -> Any:
        return input_ids * int(input_ids.sum())

    with pytest.raises(RuntimeError, match="captur"), torch.inference_mode():
        CapturedPasses(asking)(input_ids=torch.ones(4, device="cuda"))
