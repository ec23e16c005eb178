"""A text is checked against the model, the seed and the settings that should have chosen it."""

import copy
import functools
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from backend.counts import RunCounts
from backend.models.source import ModelSource
from backend.plan import CACHES, GeneratePlan, LoadPlan, ParallelPlan, Plan
from backend.worker.prove import chosen
from tests.support.tiny_models import tiny

PROMPT, NEW = [5, 6, 7], 8


def text(tokens: int = NEW) -> list[int]:
    ids = torch.tensor([PROMPT])
    with torch.no_grad():
        logits = torch.tensor([])
        for _ in range(tokens):
            logits = tiny("llama")(ids).logits[0, -1]
            ids = torch.cat([ids, logits.argmax().view(1, 1)], 1)
    return [int(one) for one in ids[0, len(PROMPT) :]]


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_tokens_that_the_model_would_not_choose_are_counted(wrong: int) -> None:
    """Of the last ones: what follows a wrong token is another text."""
    generated = text()
    with torch.no_grad():
        for at in range(NEW - wrong, NEW):
            logits = tiny("llama")(torch.tensor([PROMPT + generated[:at]])).logits[0, -1]
            generated[at] = int(logits.argmin())
    found = chosen.checked(tiny("llama"), PROMPT, generated)
    assert (found.checked_tokens, found.strange_tokens) == (NEW, wrong)


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
    monkeypatch.setitem(chosen.SLACK, torch.float32, float((best.values[0] - best.values[1]) / logits.std() / times))
    assert chosen.checked(tiny("llama"), PROMPT, generated).strange_tokens == strange


@pytest.mark.parametrize(
    ("seconds", "thirds", "near", "strange"),
    [(0, 0, 0, 0), (2, 0, 0, 0), (3, 0, 0, 3), (16, 0, 0, 16), (0, 1, 0, 1), (2, 1, 0, 1), (3, 1, 0, 4), (2, 0, 9, 0)],
)
def test_few_tokens_of_a_text_may_be_the_second_likeliest(seconds: int, thirds: int, near: int, strange: int) -> None:
    """Of 16, two by more than the slack, and any number of those that are nearly the likeliest."""
    logits = torch.tensor([[4.0, 3.0, 2.0]]).repeat(16, 1)
    ids = torch.zeros(16, dtype=torch.long)
    ids[:seconds], ids[seconds : seconds + thirds] = 1, 2
    logits[seconds + thirds : seconds + thirds + near, 1] = 3.99
    ids[seconds + thirds : seconds + thirds + near] = 1
    assert int(chosen._greedy(logits, ids, torch.full((16,), 0.25)).sum()) == strange


@pytest.mark.parametrize("place", [0, 8, 11])
def test_of_a_long_greedy_text_some_before_the_last_ones_are_checked(
    place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six of twelve: the last three, and three from the first one on."""
    monkeypatch.setattr(chosen, "MOST_CHECKED", 6)
    generated = text(12)
    seen: list[Any] = []
    hook = tiny("llama").register_forward_pre_hook(
        lambda _, args, more: seen.append(more["logits_to_keep"].tolist()), with_kwargs=True
    )
    try:
        chosen.checked(tiny("llama"), PROMPT, generated)
    finally:
        hook.remove()
    assert seen == [[len(PROMPT) - 1 + one for one in (0, 4, 8, 9, 10, 11)]]
    wrong = [*generated[:place], (generated[place] + 1) % 97, *generated[place + 1 :]]
    assert chosen.checked(tiny("llama"), PROMPT, generated).strange_tokens == 0
    assert chosen.checked(tiny("llama"), PROMPT, wrong).strange_tokens


def test_only_some_tokens_are_checked_and_no_text_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    generated = text()
    monkeypatch.setattr(chosen, "MOST_CHECKED", 5)
    assert chosen.checked(tiny("llama"), PROMPT, generated).checked_tokens == 5
    monkeypatch.setattr(chosen, "MOST_TOKENS", len(PROMPT) + NEW - 1)
    for prompt, new in ((PROMPT, generated), (PROMPT, [])):
        assert chosen.checked(tiny("llama"), prompt, new).checked_tokens is None


def test_memory_that_is_too_small_for_the_pass_ends_nothing() -> None:
    def full(*args: Any, **kwargs: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    model = SimpleNamespace(device=torch.device("cpu"), dtype=torch.float32, parameters=lambda: iter(()))
    assert (
        chosen.checked(type("Full", (SimpleNamespace,), {"__call__": full})(**vars(model)), PROMPT, text())
        == RunCounts()
    )
    assert "memory" in chosen.uncounted(len(PROMPT) + NEW) and "longer" in chosen.uncounted(chosen.MOST_TOKENS + 1)


def test_what_was_compiled_is_passed_by() -> None:
    model = copy.deepcopy(tiny("llama"))
    made: list[object] = []

    def backend(graph: Any, inputs: object) -> Any:
        made.append(graph)
        return graph.forward

    model.forward = torch.compile(model.forward, backend=backend)
    assert chosen.checked(model, PROMPT, text()).strange_tokens == 0
    assert not made, "a graph for this length"
    model(torch.tensor([PROMPT]))
    assert made


def drawing(seed: int = 3, temperature: float = 0.7, top_k: int = 0, top_p: float = 1.0) -> chosen.Drawing:
    """As `generate` draws for a batch of one."""

    def noise(tokens: int, vocabulary: int) -> torch.Tensor:
        drawn = torch.Generator().manual_seed(seed)
        return torch.cat([-torch.empty(1, vocabulary).exponential_(generator=drawn).log() for _ in range(tokens)])

    return chosen.Drawing(temperature, top_k, top_p, noise)


@functools.cache
def sampled(model: str = "llama", **settings: Any) -> list[int]:
    torch.manual_seed(3)
    ids = torch.tensor([PROMPT])
    how = {"do_sample": True, "temperature": 0.7, "top_k": 0, "top_p": 1.0} | settings
    text = tiny(model).generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=24, eos_token_id=None, **how)
    return [int(one) for one in text[0, len(PROMPT) :]]


@pytest.mark.parametrize(
    "settings", [{}, {"top_k": 4}, {"top_p": 0.5}, {"temperature": 2.5, "top_k": 30, "top_p": 0.9}]
)
def test_what_a_seed_draws_is_found_again(settings: dict[str, Any]) -> None:
    found = chosen.checked(tiny("llama"), PROMPT, sampled(**settings), drawing(**settings))
    assert (found.checked_tokens, found.strange_tokens) == (24, 0)


@pytest.mark.parametrize(
    ("prompt", "really", "asked"),
    [
        (PROMPT, {}, {"seed": 4}),
        ([7, 6, 5], {}, {}),
        (PROMPT, {"top_k": 0}, {"top_k": 4}),
        (PROMPT, {"top_p": 1.0}, {"top_p": 0.5}),
        (PROMPT, {"temperature": 0.02}, {"temperature": 0.7}),
    ],
)
def test_another_seed_prompt_temperature_or_filter_is_seen(
    prompt: list[int], really: dict[str, Any], asked: dict[str, Any]
) -> None:
    found = chosen.checked(tiny("llama"), prompt, sampled(**really), drawing(**asked))
    assert found.strange_tokens, found


def test_of_a_sampled_text_the_first_tokens_are_checked_since_a_seed_draws_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chosen, "MOST_CHECKED", 10)
    found = chosen.checked(tiny("llama"), PROMPT, sampled(), drawing())
    assert (found.checked_tokens, found.strange_tokens) == (10, 0)


def test_at_the_limit_of_a_filter_either_of_two_tokens_may_have_been_kept() -> None:
    """The third of four nearly equal ones wins by noise; where the model was rounded otherwise, it was not kept."""
    logits = torch.tensor([[4.0, 3.9, 3.799, 3.8, *[-4.0] * 60]])
    noise = torch.zeros(1, 64)
    noise[0, 3] = 9.0

    def strange(token: int, slack: float) -> bool:
        how = chosen.Drawing(1.0, 3, 1.0, lambda tokens, vocabulary: noise)
        return bool(chosen._drawn(logits, torch.tensor([token]), torch.tensor([slack]), how)[0])

    assert [strange(token, 0.0) for token in range(4)] == [True, True, True, False]
    assert [strange(token, 0.05) for token in range(4)] == [False, True, True, False]
    assert strange(9, 0.05)


def held_again(token: int, steps: list[float], most: int = 3) -> tuple[RunCounts, list[list[int]]]:
    """One drawn token, where the pass finds the third and the fourth word all but equal, and steps find `steps`."""
    logits = torch.tensor([[[4.0, 3.9, 3.8, 3.799, *[-4.0] * 60]]])
    noise = torch.zeros(1, 64)
    noise[0, token] = 9.0
    asked = list[list[int]]()

    def again(ids: list[int]) -> torch.Tensor:
        asked.append(ids)
        return torch.tensor([[*steps, *[-4.0] * 60]])

    model = SimpleNamespace(device=torch.device("cpu"), dtype=torch.bfloat16, parameters=lambda: iter(()))
    given = type("Fixed", (SimpleNamespace,), {"__call__": lambda self, **more: SimpleNamespace(logits=logits)})
    how = chosen.Drawing(1.0, most, 1.0, lambda tokens, vocabulary: noise)
    return chosen.checked(given(**vars(model)), PROMPT, [token], how, again=again), asked


@pytest.mark.parametrize(
    ("token", "steps", "strange", "asked"),
    [
        (3, [4.0, 3.9, 3.799, 3.8], 0, True),  # the steps kept it
        (3, [4.0, 3.9, 3.8, 3.7], 1, True),
        (3, [4.0, 3.9, 3.8, 3.795], 0, True),  # within the slack of steps
        (2, [4.0, 3.9, 3.7, 3.8], 0, False),  # the pass keeps it: nothing is asked
        (9, [4.0, 3.9, 3.8, 3.7], 1, False),  # the pass is certain
    ],
)
def test_at_the_limit_of_a_filter_the_steps_decide(token: int, steps: list[float], strange: int, asked: bool) -> None:
    found, calls = held_again(token, steps)
    assert (found.strange_tokens, calls) == (strange, [[token]] if asked else [])


def test_how_many_tokens_the_filters_decided_is_counted_where_there_are_any() -> None:
    assert held_again(2, [])[0].filtered_tokens == 0  # it wins without them
    assert held_again(3, [4.0, 3.9, 3.8, 3.7])[0].filtered_tokens == 0  # it should not have won
    assert chosen.checked(tiny("llama"), PROMPT, sampled(), drawing()).filtered_tokens is None
    few = chosen.checked(tiny("llama"), PROMPT, sampled(top_k=4), drawing(top_k=4)).filtered_tokens
    free, kept = sampled(), sampled(top_k=4)
    assert few and next(i for i, pair in enumerate(zip(free, kept, strict=True)) if pair[0] != pair[1]) < 24


def test_what_steps_choose_from_is_kept_in_the_order_of_the_text() -> None:
    kept = chosen.Logits([7, 8])
    kept.take(1, torch.tensor([1.0, 2.0]))
    kept.take(0, torch.tensor([3.0, 4.0], dtype=torch.bfloat16))
    kept.take(1, torch.tensor([5.0, 6.0]))
    assert kept.every().tolist() == [[3, 4], [5, 6]]
    with pytest.raises(KeyError):
        chosen.Logits([7]).every()


@pytest.mark.parametrize(
    ("load", "generate", "said"),
    [
        ({}, {}, ""),
        ({}, {"cache": CACHES["static"], "loop": "own"}, ""),
        ({"device": "cuda"}, {"cache": CACHES["static"], "loop": "own", "cuda_graphs": "manual"}, ""),
        ({"device": "cuda", "routed": 4}, {}, "but with drafts: routers"),
        ({"device": "cuda", "routed": 4}, {"cache": CACHES["static"], "compile_mode": "default"}, "routers"),
        ({"device": "cuda", "routed": 4, "rows": 2}, {}, "routers"),
        ({"rows": 2}, {}, ""),
        ({"routed": 4}, {}, ""),
        ({"device": "cuda", "parallel": ParallelPlan("tensor", 2)}, {}, "but greedy: on several ranks"),
        ({"parallel": ParallelPlan("tensor", 2), "routed": 4}, {}, "but greedy: on several ranks"),
        ({"device": "cuda", "parallel": ParallelPlan("tensor", 2), "routed": 4}, {}, "on several ranks"),
        ({"attention": "sdpa"}, {}, ""),
        ({"attention": "flex_attention"}, {}, "flex_attention"),
        ({}, {"compile_mode": "default"}, ""),
        ({}, {"cache": CACHES["quantized-fp8"]}, "quantized cache"),
    ],
)
@pytest.mark.parametrize("drafts", [0, 5])
@pytest.mark.parametrize("sampled", [False, True])
def test_what_cannot_be_checked_is_said_with_its_reason(
    load: dict[str, Any], generate: dict[str, Any], said: str, drafts: int, sampled: bool
) -> None:
    load = dict(load)
    routed, rows = load.pop("routed", 0), load.pop("rows", 1)
    plan = Plan(LoadPlan(ModelSource("random"), **load), GeneratePlan(**generate, prompt_lookup=drafts), routed)
    why = chosen.beyond_check(plan, sampled, rows)
    if said.startswith("but with drafts: "):
        said = said.removeprefix("but with drafts: ") if drafts else ""
    elif said.startswith("but greedy: "):
        said = said.removeprefix("but greedy: ") if sampled else ""
    elif drafts and not sampled and not routed:
        said = ""
    assert said in why and bool(why) is bool(said)


def test_beside_packed_weights_a_token_may_lie_further_behind() -> None:
    """What multiplies with them may be rounded as well."""
    plain, packed = tiny("llama"), copy.deepcopy(tiny("llama"))
    packed.extra = torch.nn.Parameter(torch.zeros(4, dtype=torch.uint8), requires_grad=False)
    assert chosen._slack(plain) == chosen.SLACK[torch.float32]
    assert chosen._slack(packed) == chosen.PACKED_SLACK > chosen.OTHER_SLACK > chosen._slack(plain)
