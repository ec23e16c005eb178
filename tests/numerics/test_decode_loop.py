"""The custom decode loop takes the steps of `generate`, on every architecture of the catalogue and on others."""

import functools

import pytest
import torch
from transformers import LogitsProcessorList, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from tests.support.decode_loop import NEW, Told, generated, greedy, own, prompt
from tests.support.tiny_models import CONFIGS, LATENTS, MORE_STATES, OTHERS, STATES, WINDOW, build, tiny
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.loop.sampling import Sampling, gumbel
from tokendyno.backend.worker.patch.projections import fuse

ARCHITECTURES = [*CONFIGS, *OTHERS]
EVERY = [*ARCHITECTURES, *STATES, *LATENTS, *(pytest.param(name, marks=pytest.mark.full) for name in MORE_STATES)]
HYBRIDS = ("bamba", "falcon_h1", "lfm2", "nemotron_h", "qwen3_5_text", "qwen3_next")


@functools.cache
def expected_of(architecture: str, attention: str | None, tokens: int, batch: int = 1, padded: int = 0) -> torch.Tensor:
    """What `generate` makes of a prompt, by the arguments of `tiny` and of `prompt`: several tests ask."""
    return greedy(tiny(architecture, attention), prompt(tokens, batch, padded))


@pytest.mark.parametrize("attention", [None, pytest.param("eager", marks=pytest.mark.full)])
@pytest.mark.parametrize("architecture", EVERY)
def test_greedy_text_is_that_of_generate_in_and_past_the_window(architecture: str, attention: str | None) -> None:
    model = tiny(architecture, attention)
    for asked in ((5,), (WINDOW,), (3, 3), (20, 3, 4), (1,)):
        inputs, expected = prompt(*asked), expected_of(architecture, attention, *asked)
        meter = Told()
        assert torch.equal(own(model, inputs, told=meter), expected)
        assert meter.ids == expected[0, inputs.ids.shape[1] :].tolist()


@pytest.mark.parametrize("architecture", EVERY)
def test_logits_of_each_step_are_those_of_generate(architecture: str) -> None:
    model, inputs = tiny(architecture), prompt(20)
    expected = generated(model, inputs.ids)
    new_ids = expected.sequences[0, 20:].tolist()
    loop = DecodeLoop(model, 0, [])
    own(model, inputs, loop=loop, given=new_ids)
    torch.testing.assert_close(loop.given_logits(), torch.cat(expected.logits), atol=2e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "architecture", [*CONFIGS, *(pytest.param(name, marks=pytest.mark.full) for name in (*OTHERS, *STATES, *LATENTS))]
)
def test_a_prompt_in_chunks_gives_the_same_text(architecture: str) -> None:
    """Chunks below, at and above the window; a last one of one token, or no other than the first."""
    model = tiny(architecture)
    for asked, chunks in (((21,), (5, WINDOW, 12)), ((20, 3, 4), (5,)), ((3,), (12,))):
        expected = expected_of(architecture, None, *asked)
        for chunk in chunks:
            assert torch.equal(own(model, prompt(*asked), chunk=chunk), expected)


@pytest.mark.parametrize(
    "architecture", [*sorted(set(ARCHITECTURES) - {"gpt2", "phi3"}), *HYBRIDS, "deepseek_v2", "deepseek_v3"]
)
def test_fused_projections_give_the_same_text(architecture: str) -> None:
    """phi3 and gpt2 have theirs fused by themselves."""
    model, inputs = build(architecture), prompt(20, 3, padded=4)
    assert fuse(model) > 0
    expected = expected_of(architecture, None, 20, 3, 4)
    assert torch.equal(greedy(model, inputs), expected)
    assert torch.equal(own(model, inputs), expected)


@pytest.mark.parametrize("sampling", [Sampling(2.0), Sampling(1.0, 3), Sampling(1.5, 0, 0.6), Sampling(0.8, 20, 0.9)])
def test_a_sampled_token_is_what_transformers_warpers_and_the_noise_of_the_seed_leave(sampling: Sampling) -> None:
    """Each row and step by the logits of a pass over the whole text, without a cache."""
    model, inputs, seed = tiny("olmo3"), prompt(9, 3), 7
    warpers = LogitsProcessorList([TemperatureLogitsWarper(sampling.temperature)])
    if sampling.top_k:
        warpers.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1:
        warpers.append(TopPLogitsWarper(sampling.top_p))
    ids = inputs.ids
    with torch.inference_mode():
        for step in range(NEW):
            logits = model(ids, use_cache=False).logits[:, -1]
            noise = gumbel(logits.shape, torch.tensor([seed]), torch.tensor([step]))
            ids = torch.cat([ids, (warpers(ids, logits) + noise).argmax(-1, keepdim=True)], 1)
    assert torch.equal(own(model, inputs, sampling=sampling, seed=seed), ids)
