"""Prompt lookup: refused where transformers fails, the same greedy text where not, proved by what it looked up."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers import DynamicCache, GenerationConfig, QuantizedCache, StaticCache
from transformers.models.auto.configuration_auto import model_type_to_module_name
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from tests.support.machines import CPU, facts
from tests.support.proof import claimed
from tests.support.tiny_models import tiny
from tokendyno.backend.counts import Drafts, RunCounts
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.axes.speculation import LOOKUP_TOKENS, STATEFUL, Speculation
from tokendyno.backend.plan import GeneratePlan, LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.runners.decode import DraftCounter
from tokendyno.backend.worker.witness import find

CACHES: dict[str, Any] = {
    "dynamic": lambda config: DynamicCache(config=config),
    "unwindowed": lambda config: DynamicCache(),
    "static": lambda config: StaticCache(config, 64),
    "quantized-fp8": lambda config: QuantizedCache("fp8", config),
}
PLAN = Plan(LoadPlan(ModelSource("random")), GeneratePlan(prompt_lookup=LOOKUP_TOKENS))


def test_the_table_of_stateful_architectures_is_what_the_classes_of_transformers_say() -> None:
    folder = Path(transformers.__file__).parent / "models"
    stateful = set()
    for architecture in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        module = model_type_to_module_name(architecture)
        source = folder / module / f"modeling_{module}.py"
        if source.is_file() and "_is_stateful = True" in source.read_text():
            stateful.add(architecture)
    assert stateful == STATEFUL


def generate(architecture: str, kind: str = "dynamic", tokens: int | None = LOOKUP_TOKENS, batch: int = 1) -> Any:
    """Ids after a prompt that repeats itself."""
    torch.manual_seed(1)
    ids = torch.randint(3, 90, (1, 5)).repeat(batch, 4)
    settings = GenerationConfig(
        max_new_tokens=24, do_sample=False, eos_token_id=None, pad_token_id=0, prompt_lookup_num_tokens=tokens
    )
    model = tiny(architecture)
    return model.generate(
        ids, attention_mask=torch.ones_like(ids), past_key_values=CACHES[kind](model.config), generation_config=settings
    )


def levels(batch: int = 1, **choices: str) -> list[tuple[str, dict[str, str]]]:
    subject = subject_of(facts("random:Qwen3-0.6B"), CPU, {"cache": "dynamic", **choices}, batch)
    return [(v.level, v.fix) for v in Speculation().verdicts("prompt-lookup", subject) if v.level != "note"]


@pytest.mark.parametrize("kind", CACHES)
def test_it_is_refused_with_the_caches_that_cannot_forget(kind: str) -> None:
    if kind in ("dynamic", "unwindowed"):
        assert levels(cache=kind) == []
        generate("llama", kind)
        return
    assert levels(cache=kind) == [("blocked", {"cache": "dynamic"})]
    with pytest.raises((ValueError, IndexError), match=r"Static cache|too many indices"):
        generate("llama", kind)


@pytest.mark.parametrize("kind", ["dynamic", "unwindowed"])
@pytest.mark.parametrize("architecture", ["llama", "mistral", "gpt_oss"])
def test_greedy_text_is_that_of_one_token_a_step(architecture: str, kind: str) -> None:
    with DraftCounter() as drafts:
        guessed = generate(architecture, kind)
    assert torch.equal(guessed, generate(architecture, kind, None))
    assert drafts.lookups > 0 and drafts.draft_tokens > 0


def seen(counts: RunCounts) -> Observation:
    return Observation(None, None, PLAN, counts=counts)


def test_it_is_proved_by_what_was_looked_up_and_not_by_the_plan() -> None:
    with DraftCounter() as on:
        generate("llama")
    with DraftCounter() as off:
        generate("llama", tokens=None)
    finding = find("speculation", seen(RunCounts(drafts=on.counts(24, 20))))
    assert finding.effective == "prompt-lookup"
    assert (
        finding.proof
        == f"24 tokens in 20 steps: {on.lookups} lookups proposed {on.draft_tokens} draft tokens, 4 accepted"
    )
    assert off.counts(24, 24) == Drafts()
    assert find("speculation", seen(RunCounts(drafts=off.counts(24, 24)))).effective == "off"
    assert claimed(Speculation(), seen(RunCounts())) == {"off"}


@pytest.mark.parametrize(("drafts", "accepted", "outcome"), [(0, 0, "not_applicable"), (20, 0, ""), (20, 1, "")])
def test_where_nothing_was_proposed_there_is_nothing_to_judge(drafts: int, accepted: int, outcome: str) -> None:
    counts = Drafts(lookups=8, steps=8, draft_tokens=drafts, accepted_tokens=accepted)
    assert find("speculation", seen(RunCounts(drafts=counts))).outcome == outcome
