"""Greedy text is checked against the model that should have chosen it, or the row says why it cannot be."""

import copy
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import torch

from tests.support.tiny_models import tiny
from tokendyno.backend.evidence import Finding
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import CACHES, GeneratePlan, LoadPlan, Plan
from tokendyno.backend.worker.prove import tokens
from tokendyno.backend.worker.prove.tokens import Text, find_tokens
from tools.tiny_config import tiny_config

PROMPT, NEW = [5, 6, 7], 8
PLAN = Plan(LoadPlan(ModelSource("random", "random:tiny")), GeneratePlan())


def text(count: int = NEW) -> list[int]:
    ids = torch.tensor([PROMPT])
    with torch.no_grad():
        for _ in range(count):
            ids = torch.cat([ids, tiny("llama")(ids).logits[0, -1].argmax().view(1, 1)], 1)
    return [int(token) for token in ids[0, len(PROMPT) :]]


def found(generated: list[int], model: Any = None, plan: Plan = PLAN, sampled: bool = False) -> Finding:
    return find_tokens(model or tiny("llama"), plan, sampled, [Text(PROMPT, generated)])


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_tokens_that_the_model_would_not_choose_do_not_count(wrong: int) -> None:
    generated = text()
    with torch.no_grad():
        for at in range(NEW - wrong, NEW):
            generated[at] = int(tiny("llama")(torch.tensor([PROMPT + generated[:at]])).logits[0, -1].argmin())
    assert (found(generated).reached, found(generated).expected) == (NEW - wrong, NEW)


def tiny_random(architecture: str) -> Any:
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(AutoConfig.for_model(**tiny_config(architecture))).eval()


def test_a_model_that_gives_the_logits_of_every_position_is_checked() -> None:
    model = tiny_random("prophetnet")
    generated: list[int] = []
    with torch.no_grad():
        for _ in range(NEW):
            generated.append(int(model(torch.tensor([PROMPT + generated]), use_cache=False).logits[0, -1].argmax()))
    assert (found(generated, model).reached, found(generated, model).expected) == (NEW, NEW)
    generated[2] = generated[2] + 1
    assert found(generated, model).reached in range(NEW)


@pytest.mark.parametrize(("times", "strange"), [(0.9, 0), (4.5, 0), (5.5, 1)])
def test_the_second_likeliest_may_have_been_chosen_if_it_is_near(
    times: float, strange: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to five times as far behind as rounding explains."""
    generated = text()
    with torch.no_grad():
        logits = tiny("llama")(torch.tensor([PROMPT + generated[:-1]])).logits[0, -1]
    best = logits.topk(2)
    generated[-1] = int(best.indices[1])
    monkeypatch.setattr(tokens, "FLOAT32_SLACK", float((best.values[0] - best.values[1]) / logits.std() / times))
    assert found(generated).reached == NEW - strange


@pytest.mark.parametrize(("routed", "farthest", "right"), [(0, 0.9, 0), (4, 0.9, NEW), (4, 6.0, 0)])
def test_a_mixture_of_16_bits_may_have_chosen_what_lies_further_behind(
    routed: int, farthest: float, right: int
) -> None:
    """In one pass its routers may choose other experts: 0.94 standard deviations were measured."""
    model = copy.deepcopy(tiny("llama")).to(torch.bfloat16)
    generated: list[int] = []
    with torch.no_grad():
        for _ in range(NEW):
            logits = model(torch.tensor([PROMPT + generated])).logits[0, -1].float()
            behind = (logits.max() - logits) / logits.std()
            generated.append(int(behind.where(behind <= farthest, 0).argmax()))
    assert found(generated, model, msgspec.structs.replace(PLAN, routed=routed)).reached == right


@pytest.mark.parametrize("place", [0, 8, 11])
def test_of_a_long_text_some_before_the_last_ones_are_checked(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six of twelve: the last three, and three from the first one on."""
    monkeypatch.setattr(tokens, "MOST_CHECKED", 6)
    generated = text(12)
    assert (found(generated).reached, found(generated).expected) == (6, 6)
    generated[place] = (generated[place] + 1) % 97
    assert (found(generated).reached or 0) < 6


class LooksAhead:
    """Its logits are right only behind the last token, as where attention looks at what follows in the text."""

    def __init__(self) -> None:
        self.model = tiny("llama")
        self.device, self.dtype, self.parameters = self.model.device, self.model.dtype, self.model.parameters

    def forward(self, input_ids: torch.Tensor, logits_to_keep: Any, **kwargs: Any) -> Any:
        logits = self.model(input_ids=input_ids, **kwargs).logits.clone()
        logits[:, :-1] *= -1
        chosen = logits[:, logits_to_keep] if isinstance(logits_to_keep, torch.Tensor) else logits[:, -logits_to_keep:]
        return SimpleNamespace(logits=chosen)

    __call__ = forward


def test_a_token_that_the_pass_doubts_is_looked_at_without_what_follows() -> None:
    assert found(text(), LooksAhead()).reached == NEW
    wrong = [*text()[:-1], int(tiny("llama")(torch.tensor([PROMPT + text()[:-1]])).logits[0, -1].argmin())]
    assert found(wrong, LooksAhead()).reached == NEW - 1


def test_every_text_counts() -> None:
    wrong = [(token + 1) % 97 for token in text()]
    both = find_tokens(tiny("llama"), PLAN, False, [Text(PROMPT, text()), Text(PROMPT, wrong)])
    assert both.expected == 2 * NEW and NEW <= (both.reached or 0) < 2 * NEW


def test_a_text_that_is_too_long_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST_TOKENS", len(PROMPT) + NEW - 1)
    row = found(text())
    assert row.outcome == "unchecked" and "longer than" in row.proof


def changed(**of: Any) -> Plan:
    load = msgspec.structs.replace(PLAN.load, **{k: v for k, v in of.items() if k in PLAN.load.__struct_fields__})
    generate = msgspec.structs.replace(PLAN.generate, cache=of.get("cache", PLAN.generate.cache))
    return msgspec.structs.replace(PLAN, load=load, generate=generate, routed=of.get("routed", 0))


@pytest.mark.parametrize(
    ("plan", "sampled", "why"),
    [
        (PLAN, True, "sampled"),
        (changed(cache=CACHES["quantized-quanto4"]), False, "quantized cache"),
        (changed(attention="flex_attention"), False, "flex_attention"),
        (changed(device="cuda", routed=2), False, "router"),
    ],
)
def test_where_one_pass_cannot_say_the_row_says_why(plan: Plan, sampled: bool, why: str) -> None:
    row = found(text(), plan=plan, sampled=sampled)
    assert (row.outcome, row.effective) == ("unchecked", "sampled" if sampled else "greedy") and why in row.proof


@pytest.mark.parametrize(("error", "why"), [(torch.OutOfMemoryError("full"), "memory"), (ValueError("odd"), "odd")])
def test_a_pass_that_fails_ends_no_run(error: Exception, why: str) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise error

    model = type("Failing", (SimpleNamespace,), {"__call__": fail, "forward": fail})(device=torch.device("cpu"))
    row = found(text(), model)
    assert row.outcome == "unchecked" and why in row.proof


def test_what_was_compiled_is_passed_by() -> None:
    model = copy.deepcopy(tiny("llama"))
    made: list[object] = []

    def backend(graph: Any, inputs: object) -> Any:
        made.append(graph)
        return graph.forward

    model.forward = torch.compile(model.forward, backend=backend)
    assert found(text(), model).reached == NEW
    assert not made, "a graph for this length"
