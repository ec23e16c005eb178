"""Rounded lengths: that the text stays, and that the choice is known by what the model was given."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache, GenerationConfig, StaticCache

from tests.support.machines import CPU, H200, facts
from tests.support.tiny_models import CONFIGS, tiny
from tokendyno.backend.counts import counts_of
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.shapes import Shapes
from tokendyno.backend.plan import GeneratePlan, LoadPlan, Plan, ShapesKind
from tokendyno.backend.predict.lengths import cache_places
from tokendyno.backend.worker.prompt import Prompt, pad, padding_counts
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find

KINDS: tuple[ShapesKind, ...] = ("exact", "padded", "buckets", "dynamic")


def levels(
    choice: str, machine: Machine = CPU, model: str = "pocket", **choices: str
) -> list[tuple[str, dict[str, str]]]:
    every = {"compile": "off", "cache": "dynamic", "attention": "auto", "loop": "generate", **choices}
    return [(v.level, v.fix) for v in Shapes().verdicts(choice, subject_of(facts(model), machine, every))]


COMPILED = {"compile": "default", "cache": "static"}


@pytest.mark.parametrize(
    ("choice", "machine", "model", "choices", "found"),
    [
        ("padded", CPU, "pocket", {}, [("note", {})]),
        ("buckets", CPU, "pocket", COMPILED, []),
        ("buckets", CPU, "pocket", COMPILED | {"attention": "flex_attention"}, [("blocked", {"attention": "auto"})]),
        ("buckets", H200, "pocket", COMPILED | {"attention": "flex_attention"}, []),
        ("dynamic", CPU, "pocket", {}, [("blocked", {"compile": "default", "cache": "static"})]),
        ("dynamic", CPU, "random:bert-base-uncased", {}, [("blocked", {"compile": "default"})]),
        ("dynamic", CPU, "pocket", COMPILED, []),
        ("dynamic", CPU, "pocket", COMPILED | {"quantization": "bnb-nf4"}, [("blocked", {"shapes": "exact"})]),
        ("dynamic", CPU, "pocket", COMPILED | {"quantization": "torchao-int8"}, []),
        ("buckets", CPU, "pocket", COMPILED | {"quantization": "bnb-nf4"}, [("note", {})]),
        ("dynamic", CPU, "pocket", COMPILED | {"loop": "own"}, [("blocked", {"loop": "generate"})]),
        ("dynamic", H200, "pocket", COMPILED | {"compile": "reduce-overhead"}, [("note", {})]),
    ],
)
def test_rules(
    choice: str, machine: Machine, model: str, choices: dict[str, str], found: list[tuple[str, dict[str, str]]]
) -> None:
    assert levels(choice, machine, model, **choices) == found


# --- padding leaves the text alone ------------------------------------------------------------------------------------


def prompt(tokens: int, batch: int = 1) -> Prompt:
    torch.manual_seed(tokens)
    ids = torch.randint(3, 90, (batch, tokens))
    return Prompt(ids, torch.ones_like(ids))


def text(architecture: str, given: Prompt, cache: Any, attention: str | None = None) -> Any:
    settings = GenerationConfig(
        max_new_tokens=20, do_sample=False, eos_token_id=None, pad_token_id=0, disable_compile=True
    )
    out = tiny(architecture, attention).generate(
        given.ids, attention_mask=given.mask, past_key_values=cache, generation_config=settings
    )
    return out[:, given.tokens :]


@pytest.mark.parametrize("architecture", CONFIGS)
def test_greedy_text_after_padding_is_that_without(architecture: str) -> None:
    """At once past the window (8 tokens), and with a cache of another length."""
    config, unpadded = tiny(architecture).config, prompt(11, 2)
    padded = pad(unpadded, "buckets", 0)
    assert (padded.tokens, int(padded.mask.sum())) == (64, 22)
    places = cache_places("buckets", 11, 20)
    assert places == 128
    expected = text(architecture, unpadded, DynamicCache(config=config))
    for cache in (DynamicCache(config=config), StaticCache(config, places)):
        assert torch.equal(text(architecture, padded, cache), expected)


def test_padding_is_said_and_counted_and_left_away_where_there_is_none() -> None:
    given = prompt(60)
    padded = pad(given, "buckets", 7)
    assert padded.ids[0, :4].tolist() == [7] * 4 and padded.mask[0].tolist() == [0] * 4 + [1] * 60
    assert torch.equal(padded.ids[:, 4:], given.ids)
    assert padded.notes == ["60 prompt tokens padded to 64: 6% of the prompt is padding"]
    assert padding_counts(padded, 64) == counts_of({"positions": 64, "padding": 4}).prompt
    assert padding_counts(padded, 60) == counts_of({"positions": 60}).prompt
    for kind in ("exact", "dynamic"):
        assert pad(given, kind) is given
    assert pad(padded, "buckets") is padded


def test_an_encoder_is_padded_on_the_right_and_reads_the_same() -> None:
    from transformers import AutoModel, BertConfig

    config = BertConfig(
        vocab_size=97,
        hidden_size=32,
        intermediate_size=32,
        num_attention_heads=4,
        num_hidden_layers=2,
        max_position_embeddings=100,
    )
    torch.manual_seed(0)
    model, given = AutoModel.from_config(config).eval(), prompt(30)
    padded = pad(given, "buckets", 0, "right", 100)
    assert (padded.tokens, pad(given, "padded", 0, "right", 100).tokens) == (64, 100)
    with torch.inference_mode():
        plain, rest = (
            model(input_ids=one.ids, attention_mask=one.mask).last_hidden_state[:, :30] for one in (given, padded)
        )
        wrong = pad(given, "buckets", 0, "left")
        shifted = model(input_ids=wrong.ids, attention_mask=wrong.mask).last_hidden_state[:, -30:]
    torch.testing.assert_close(plain, rest)
    assert not torch.allclose(plain, shifted, atol=1e-2)


# --- the proof --------------------------------------------------------------------------------------------------------


def seen(planned: ShapesKind, positions: int, padding: int, places: int = 0) -> Observation:
    """A run on a prompt of so many positions, with a static cache if it has places."""
    config = tiny("llama").config
    cache = StaticCache(config, places) if places else DynamicCache(config=config)
    for layer in range(4):
        cache.update(torch.zeros(1, 2, 3, 8), torch.zeros(1, 2, 3, 8), layer)
    counts = counts_of({"positions": positions, "padding": padding})
    plan = Plan(LoadPlan(ModelSource("random")), GeneratePlan(shapes=planned))
    return Observation(SimpleNamespace(config=config), cache, plan, counts=counts)


@pytest.mark.parametrize("planned", KINDS)
@pytest.mark.parametrize(
    ("positions", "padding", "places", "effective"),
    [
        (13, 0, 0, "exact"),
        (13, 0, 37, "exact"),
        (64, 51, 0, "buckets"),
        (64, 51, 128, "buckets"),
        (512, 499, 0, "padded"),
        (512, 499, 1024, "padded"),
        (77, 64, 0, "unknown"),
        (64, 51, 88, "unknown"),
    ],
)
def test_it_is_known_by_what_the_model_was_given(
    positions: int, padding: int, places: int, effective: str, planned: ShapesKind
) -> None:
    assert find("shapes", seen(planned, positions, padding, places)).effective == effective


@pytest.mark.parametrize(
    ("positions", "padding", "places", "same"),
    [(512, 212, 0, {"padded", "buckets"}), (512, 0, 0, {"exact", "padded", "buckets"}), (64, 0, 88, {"exact"})],
)
def test_where_lengths_come_to_the_same_the_planned_one_counts(
    positions: int, padding: int, places: int, same: set[str]
) -> None:
    for planned in KINDS[:3]:
        finding = find("shapes", seen(planned, positions, padding, places))
        assert (finding.effective == planned) is (planned in same)
        assert ("are the same here" in finding.proof) is (planned in same and len(same) > 1)
