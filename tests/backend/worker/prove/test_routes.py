"""A text of a mixture is held against a pass that takes the experts of its steps, where these are nearly the best."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from backend.counts import RunCounts
from backend.messages import Finished, Generate
from backend.worker.prove import chosen, routes
from backend.worker.prove.routes import Recorded, UnknownRoutes
from backend.worker.runners import decode
from tests.support.local_worker import LocalWorker
from tests.support.tiny_models import build
from tests.support.worker import SENTENCE, plan_of

PROMPT, NEW, TOP = [5, 6, 7, 8], 40, 2
OWN, CHUNKS = {"cache": "static", "loop": "own"}, {"prefill": "chunks-512"}
WAYS: list[dict[str, str]] = [{}, {"cache": "static"}, OWN, {"shapes": "buckets"}, CHUNKS, CHUNKS | OWN]


@functools.cache
def mixture() -> Any:
    return build("gpt_oss")


@contextmanager
def rounded_otherwise(model: Any, much: float) -> Iterator[None]:
    """What routers read in passes over one token is off by so many standard deviations."""

    def off(router: Any, args: Any) -> Any:
        states = args[0]
        if states.reshape(-1, states.shape[-1]).shape[0] > 1:
            return None
        noise = torch.randn(states.shape[-1], generator=torch.Generator().manual_seed(1))
        return (states + much * states.std() * noise,)

    hooks = [layer.mlp.router.register_forward_pre_hook(off) for layer in model.model.layers]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def greedy(ids: list[int] | None = None, new: int = NEW) -> list[int]:
    """New tokens, step by step; `ids`: these instead of the model's choice."""
    from transformers import DynamicCache

    cache, found = DynamicCache(config=mixture().config), []
    read = torch.tensor([PROMPT])
    with torch.inference_mode():
        for step in range(new):
            logits = mixture()(input_ids=read, past_key_values=cache).logits[0, -1]
            found.append(int(logits.argmax()) if ids is None else ids[step])
            read = torch.tensor([found[-1:]])
    return found


def routing(ids: list[int]) -> list[torch.Tensor]:
    with Recorded(mixture(), TOP) as recorded:
        greedy(ids, len(ids))
    return recorded.routes(torch.ones(len(PROMPT), dtype=torch.bool), len(ids))


def found(text: list[int], follow: bool = True) -> RunCounts:
    return chosen.checked(mixture(), PROMPT, text, routing=routing if follow else None)


def test_a_router_that_is_rounded_otherwise_makes_no_token_strange() -> None:
    with rounded_otherwise(mixture(), 0.05):
        text = greedy()
        assert found(text, follow=False).strange_tokens, "no router chose otherwise: nothing is shown"
        assert found(text) == RunCounts(checked_tokens=NEW, strange_tokens=0)


def test_a_router_that_chooses_badly_does() -> None:
    with rounded_otherwise(mixture(), 3.0):
        text = greedy()
        assert found(text).strange_tokens > NEW / 2  # type: ignore[operator]


@pytest.mark.parametrize("wrong", [1, 5])
def test_tokens_that_the_model_would_not_choose_are_counted(wrong: int) -> None:
    text = greedy()
    for at in range(NEW - wrong, NEW):
        text[at] = (text[at] + 17) % 97
    assert found(text).strange_tokens == wrong


def test_the_first_tokens_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their steps are made once more, which takes time."""
    text = greedy()
    text[-1] = (text[-1] + 17) % 97
    monkeypatch.setattr(chosen, "MOST_CHECKED", 10)
    assert found(text) == RunCounts(checked_tokens=10, strange_tokens=0)
    assert found(text, follow=False).strange_tokens == 1


def test_experts_are_those_of_each_token_without_padding() -> None:
    plain = routing(greedy(new=3))
    assert [one.shape for one in plain] == [(len(PROMPT) + 2, TOP)] * len(mixture().model.layers)
    recorded = Recorded(mixture(), TOP)
    with recorded, torch.inference_mode():
        mixture()(input_ids=torch.tensor([PROMPT]))
    (first, *_) = recorded.routes(torch.tensor([False, True, True, False]), 1)
    assert torch.equal(first, plain[0][1:3])


@pytest.mark.parametrize("chunk", [1, 3, 4, 9])
def test_so_are_those_of_a_prompt_in_chunks(chunk: int) -> None:
    from transformers import DynamicCache

    text, cache = greedy(new=3), DynamicCache(config=mixture().config)
    with Recorded(mixture(), TOP) as recorded, torch.inference_mode():
        for ids in (*torch.tensor(PROMPT).split(chunk), *torch.tensor(text[:-1]).split(1)):
            mixture()(input_ids=ids[None], past_key_values=cache)
    real = torch.tensor([False, True, True, True])
    found = recorded.routes(real, len(text), chunk)
    assert all(torch.equal(one, plain[1:]) for one, plain in zip(found, routing(text), strict=True))
    if chunk < len(PROMPT):
        with pytest.raises(UnknownRoutes, match="do not tell"):
            recorded.routes(real, len(text))


@pytest.mark.parametrize("passes", [1, 2, 5])
def test_passes_that_are_missing_are_said(passes: int) -> None:
    with Recorded(mixture(), TOP) as recorded:
        greedy(new=4)
    with pytest.raises(UnknownRoutes, match="do not tell"):
        recorded.routes(torch.ones(len(PROMPT), dtype=torch.bool), passes)


def test_a_pass_with_other_choices_is_said() -> None:
    """Of so many tokens, from so many layers."""
    every = routing(greedy(new=4))
    for taken in (routing(greedy(new=3)), every[1:], [*every, every[0]]):

        def others(ids: list[int], taken: list[torch.Tensor] = taken) -> list[torch.Tensor]:
            return taken

        with pytest.raises(UnknownRoutes, match="differently"):
            chosen.checked(mixture(), PROMPT, greedy(new=4), routing=others)


def test_kernels_of_a_whole_layer_tell_the_scores_of_its_router() -> None:
    """Of equal ones the first was taken."""
    model = mixture()
    recorded = Recorded(model, TOP)
    with recorded:
        for layer in model.model.layers:
            layer.mlp.router.told(torch.tensor([0.0, 2.0, 1.0, 2.0]))
    assert all(one.tolist() == [[1, 3]] for one in recorded.routes(torch.tensor([True]), 1))
    assert not any(hasattr(layer.mlp.router, "told") for layer in model.model.layers)


def test_other_choices_of_the_largest_are_no_routers() -> None:
    recorded = Recorded(mixture(), TOP)
    with recorded:
        torch.rand(1, 2000).topk(TOP)
        torch.rand(1, 4).topk(3)
        torch.rand(4).topk(TOP)
    with pytest.raises(UnknownRoutes):
        recorded.routes(torch.tensor([True]), 1)


@pytest.fixture(scope="module")
def worker() -> LocalWorker:
    return LocalWorker(plan_of(dtype="float32").load)


def job(ways: dict[str, str], temperature: float = 0.0, new: int = 12) -> Generate:
    plan = plan_of(**{"dtype": "float32"} | ways)
    tokens = 600 if "prefill" in ways else 0
    return Generate(plan, SENTENCE, tokens, new, 1, temperature, 0, ignore_eos=True, warmup=False, prove=True)


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("ways", WAYS, ids=lambda ways: ",".join(ways.values()) or "baseline")
def test_runs_follow_their_routers_in_every_way_of_generating(
    worker: LocalWorker, ways: dict[str, str], temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU; what the steps are made again with is not what the run keeps."""
    monkeypatch.setattr(decode, "follows_routes", lambda plan: plan.routed > 0)
    asked: list[int] = []
    plain = Recorded.routes

    def told(self: Recorded, real: torch.Tensor, passes: int, chunk: int) -> list[torch.Tensor]:
        asked.append(passes)
        return plain(self, real, passes, chunk)

    monkeypatch.setattr(Recorded, "routes", told)
    with rounded_otherwise(worker.model.model, 0.05):
        finished = worker.run(job(ways, temperature))
    assert isinstance(finished, Finished) and asked == [12]
    assert (finished.extra.checked_tokens, finished.extra.strange_tokens) == (12, 0), finished.unchecked


def test_a_reason_is_given_where_the_routers_are_not_seen(worker: LocalWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "follows_routes", lambda plan: True)
    monkeypatch.setattr(routes, "MOST_EXPERTS", 1)
    finished = worker.run(job({}))
    assert "do not tell" in finished.unchecked and finished.extra.checked_tokens is None
