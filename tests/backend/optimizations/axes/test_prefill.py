"""A prompt in chunks: where it may be, that the text stays, and that the passes of a run are held against the plan."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import DynamicCache, GenerationConfig, StaticCache

from tests.support.machines import CPU, EIGHT, H200, facts, settled
from tests.support.tiny_models import CONFIGS, tiny
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.palette import palette
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.counts import counts_of
from tokendyno.backend.evidence import Evidence
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import defaults, subject_of
from tokendyno.backend.optimizations.axes.prefill import SIZES, Prefill
from tokendyno.backend.plan import STATIC, GeneratePlan, LoadPlan, Plan
from tokendyno.backend.worker.prompt import Prompt, pad
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find

CHUNKS = sorted(SIZES)


# --- where it may be --------------------------------------------------------------------------------------------------

OWN = {"loop": "own", "cache": "static"}


@pytest.mark.parametrize("choice", CHUNKS)
@pytest.mark.parametrize(
    ("model", "machine", "choices", "blocked"),
    [
        ("pocket", CPU, {}, []),
        ("pocket", CPU, {"cache": "static"}, []),
        ("random:Gemma-3-1b", H200, {"cache": "offloaded", "shapes": "padded"}, []),
        ("random:Llama-3-8B", H200, OWN | {"cuda_graphs": "manual", "compile": "default"}, []),
        ("random:Llama-3-8B", H200, {"speculation": "prompt-lookup"}, [{"speculation": "off"}]),
        ("random:Llama-3-8B", CPU, {"cache": "quantized-fp8"}, [{"cache": "dynamic"}]),
        ("random:Llama-3-8B", CPU, {"cache": "static", "compile": "default"}, [{"loop": "own", "cache": "static"}]),
        ("random:Llama-3-8B", CPU, {"compile": "default"}, [{"loop": "own", "cache": "static"}]),
        ("random:Llama-3-8B", CPU, {"attention": "flex_attention"}, [{"attention": "auto"}]),
        ("random:Llama-3-8B", EIGHT, {"parallel": "tensor-2"}, [{"parallel": "off"}]),
        ("random:Llama-3-8B", EIGHT, {"parallel": "device-map-2"}, [{"parallel": "off"}]),
        ("random:Llama-3-8B", H200, {"batching": "continuous"}, [{"prefill": "whole"}]),
        ("random:Llama-3-8B", H200, {"batching": "static"}, [{"prefill": "whole"}]),
    ],
)
def test_what_cannot_be_read_in_chunks_is_refused(
    choice: str, model: str, machine: Machine, choices: dict[str, str], blocked: list[dict[str, str]]
) -> None:
    verdicts = Prefill().verdicts(choice, subject_of(facts(model), machine, defaults() | choices))
    assert [v.fix for v in verdicts if v.level == "blocked"] == blocked


@pytest.mark.parametrize(
    ("model", "attention", "warned"),
    [
        ("random:Llama-3-8B", "auto", True),
        ("random:Llama-3-8B", "sdpa-gqa", False),
        ("random:Llama-3-8B", "eager", False),
        ("pocket", "auto", False),  # eager, for its sinks
        ("random:gpt2", "auto", False),  # no grouped heads
    ],
)
def test_only_sdpa_is_told_what_a_mask_costs_it(model: str, attention: str, warned: bool) -> None:
    verdicts = Prefill().verdicts(CHUNKS[0], subject_of(facts(model), CPU, defaults() | {"attention": attention}))
    assert any("A chunk needs a mask" in v.reason for v in verdicts) == warned


CAPTURED = OWN | {"cuda_graphs": "manual"}


@pytest.mark.parametrize(
    ("choices", "graphs", "compiled"),
    [
        ({"prefill": "captured"}, True, False),
        ({"prefill": "compiled", "cuda_graphs": "manual"}, True, True),
        ({"prefill": "compiled", "cuda_graphs": "off"}, False, True),
        ({"prefill": "whole", "cuda_graphs": "manual", "loop": "own", "compile": "default"}, False, False),
    ],
)
def test_a_compiled_pass_is_captured_where_the_step_is(choices: dict[str, str], graphs: bool, compiled: bool) -> None:
    made = settled(facts("random:Llama-3-8B"), choices, H200)
    assert not made.blocked
    assert (made.plan.generate.prefill_graphs, made.plan.generate.prefill_compiled) == (graphs, compiled)


def test_an_encoder_has_no_prompt_to_be_cut() -> None:
    checked = check(make_config("m", {"prefill": "chunks-512"}), facts("random:bert-base-uncased"), CPU, Workload("x"))
    assert [v.fix for v in checked.blocked] == [{"prefill": "whole"}]


@pytest.mark.parametrize("words", ["less memory", "long prompts", "chunked prefill"])
def test_it_is_found_by_what_it_is_for(words: str) -> None:
    entries = [entry for entry in palette(facts("random:Llama-3-8B"), H200) if entry.axis == "Prefill"]
    entries = [entry for entry in entries if "chunks" in entry.title]
    assert len(entries) == len(CHUNKS)
    for entry in entries:
        assert entry.state == "runs"
        assert words in f"{entry.group} {entry.title} {entry.summary} {entry.words}".lower()


# --- the text stays ---------------------------------------------------------------------------------------------------


def prompt(padded: bool) -> Prompt:
    torch.manual_seed(1)
    ids = torch.randint(3, 97, (2, 37))
    given = Prompt(ids, torch.ones_like(ids))
    return pad(given, "buckets", 0) if padded else given


NEW = 8
"""As many tokens as the window has, none of which was in it at the start."""


def text(model: Any, given: Prompt, cache: Any, chunk: int | None) -> Any:
    settings = GenerationConfig(
        max_new_tokens=NEW,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
        disable_compile=True,
        prefill_chunk_size=chunk,
    )
    with torch._dynamo.config.patch(recompile_limit=torch._dynamo.config.recompile_limit):
        return model.generate(given.ids, attention_mask=given.mask, past_key_values=cache, generation_config=settings)[
            :, given.tokens :
        ]


@pytest.mark.parametrize("architecture", CONFIGS)
def test_greedy_text_after_chunks_is_that_after_one_pass(architecture: str) -> None:
    """In float32, with windows (8 tokens) smaller than a chunk and larger, left padding, and a lone last token."""
    model = tiny(architecture)
    for given in (prompt(False), prompt(True)):
        expected = text(model, given, DynamicCache(config=model.config), None)
        for chunk in (4, 36):
            for cache in (DynamicCache(config=model.config), StaticCache(model.config, given.tokens + NEW)):
                assert torch.equal(text(model, given, cache, chunk), expected), (given.tokens, chunk, type(cache))


# --- what counts as proof ---------------------------------------------------------------------------------------------


def row(choice: str, **counts: float) -> Evidence:
    chunk, graphs = SIZES.get(choice, 0), choice.startswith("captured")
    generate = GeneratePlan(STATIC, prefill_chunk=chunk, prefill_graphs=graphs)
    choice = choice.removeprefix("captured and ")
    plan = Plan(LoadPlan(ModelSource("random")), generate)
    seen = Observation(SimpleNamespace(), None, plan, counts=counts_of(counts))
    return Evidence(choice, choice, find("prefill", seen), Prefill().off)


GOOD = {"positions": 1300, "prompt_passes": 3, "widest_prompt_pass": 512, "planned_prompt_passes": 3, "passes": 9}


NONE_BY_HAND = {"prompt_passes": 0}
COMPILED = NONE_BY_HAND | {"prompt_compiled_matrices": 29, "matrices": 29}
REPLAYED = NONE_BY_HAND | {"prompt_replays": 1}


@pytest.mark.parametrize(
    ("choice", "changed", "status", "of"),
    [
        ("chunks-512", {}, "verified", (3, 3)),
        ("chunks-512", {"planned_prompt_passes": 2}, "partial", (2, 4)),
        ("chunks-512", {"prompt_passes": 2, "planned_prompt_passes": 2}, "partial", (2, 3)),
        ("chunks-512", {"widest_prompt_pass": 256, "prompt_passes": 6, "planned_prompt_passes": 0}, "failed", None),
        ("chunks-2048", {}, "failed", None),
        ("captured", {"prompt_passes": 0, "batch_requests": 8}, "not_applicable", None),
        ("whole", {"prompt_passes": 0}, "off", None),
        ("whole", {}, "failed", None),
        ("captured", NONE_BY_HAND | {"prompt_replays": 0}, "failed", None),
        ("captured", REPLAYED, "verified", (1, 1)),
        ("compiled", COMPILED, "verified", (29, 29)),
        ("compiled", COMPILED | {"prompt_compiled_matrices": 28}, "partial", (28, 29)),
        ("captured and compiled", COMPILED | {"prompt_replays": 1}, "verified", (29, 29)),
        ("captured and compiled", COMPILED | {"prompt_replays": 2}, "partial", (29, 58)),
    ],
)
def test_passes_are_held_against_the_plan(
    choice: str, changed: dict[str, float], status: str, of: tuple[int, int] | None
) -> None:
    evidence = row(choice, **GOOD | changed)
    assert evidence.status == status, evidence
    if of is not None:
        assert (evidence.finding.reached, evidence.finding.expected) == of


@pytest.mark.parametrize(("choice", "fits"), [("chunks-512", True), ("whole", False)])
def test_a_prompt_of_one_chunk_says_that_it_was_not_cut(choice: str, fits: bool) -> None:
    proof = row(choice, **GOOD | {"positions": 512, "prompt_passes": 1, "planned_prompt_passes": 1}).finding.proof
    assert proof.endswith("it fits into one chunk of 512") is fits, proof
