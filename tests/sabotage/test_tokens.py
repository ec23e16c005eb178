"""loop: tokens that come from another seed, temperature or prompt, or from less work than a step takes."""

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import pytest
import torch
from transformers import GenerationConfig
from transformers.generation.utils import GenerationMixin

from backend.runs.run import Run
from backend.views.ledger import LedgerRow, ledger_summary, prompt_rows
from backend.worker.loop import step as own_step
from backend.worker.loop.sampling import Sampling, sample
from backend.worker.prove.passes import PassCounter
from tests.sabotage.damage import layers_of, model_changed
from tests.sabotage.ledger_of import run_of
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import llama
from tests.sabotage.test_loop import computed_twice

Patch = Callable[[], AbstractContextManager[Any]]


def another_seed() -> Any:
    plain = torch.manual_seed
    return mock.patch.object(torch, "manual_seed", lambda seed: plain(seed + 1))


def sampled_otherwise(**other: Any) -> Patch:
    """`generate` with other settings, in the run and in everything else."""
    plain = GenerationConfig.__init__

    def begin(self: Any, **settings: Any) -> None:
        plain(self, **settings | (other if settings.get("do_sample") else {}))

    return lambda: mock.patch.object(GenerationConfig, "__init__", begin)


def own_sampled_otherwise(change: Callable[[Any, Any], tuple[Any, Any]]) -> Patch:
    """The custom loop's choice; `change` gets sampling and seed."""

    def changed(logits: Any, sampling: Any, seed: Any, step: Any) -> Any:
        return sample(logits, *change(sampling, seed), step)

    return lambda: mock.patch.object(own_step, "sample", changed)


def half_as_many() -> Any:
    """`generate` is asked for half of the tokens."""
    plain = GenerationConfig.__init__

    def begin(self: Any, **settings: Any) -> None:
        plain(self, **settings | {"max_new_tokens": max(1, settings.get("max_new_tokens", 2) // 2)})

    return mock.patch.object(GenerationConfig, "__init__", begin)


def the_second() -> Any:
    """Of every step's scores, which torch.argmax chooses from."""
    plain = torch.argmax

    def argmax(scores: Any, *rest: Any, **more: Any) -> Any:
        return scores.topk(2).indices[..., 1] if scores.ndim == 2 else plain(scores, *rest, **more)

    return mock.patch.object(torch, "argmax", argmax)


def another_prompt() -> Any:
    """Of the same length: its tokens in the opposite order."""
    plain = GenerationMixin.generate

    def generate(self: Any, ids: Any, **more: Any) -> Any:
        return plain(self, ids.flip(1), **more)

    return mock.patch.object(GenerationMixin, "generate", generate)


@contextmanager
def while_measured(change: Callable[[Any], Callable[[], None]]) -> Iterator[None]:
    """`change` breaks the model as the measured run begins, and returns what mends it when that ends."""
    enter, leave = PassCounter.__enter__, PassCounter.__exit__
    models, mended = list[Any](), list[Callable[[], None]]()

    def begin(self: Any) -> Any:
        mended.append(change(models[-1]))
        return enter(self)

    def end(self: Any, *exc: Any) -> None:
        leave(self, *exc)
        mended.pop()()

    with (
        model_changed(models.append),
        mock.patch.object(PassCounter, "__enter__", begin),
        mock.patch.object(PassCounter, "__exit__", end),
    ):
        yield


def without_mlps(model: Any) -> Callable[[], None]:
    """Half of the layers have attention alone."""
    halved = [layer.mlp for layer in layers_of(model)[1::2]]
    for mlp in halved:
        mlp.forward = lambda states: (torch.zeros_like(states), None)  # the second are the router's scores

    def mend() -> None:
        for mlp in halved:
            del mlp.forward

    return mend


def every_other_pass(model: Any) -> Callable[[], None]:
    """Each second step takes the logits of the step before."""
    plain, kept = model.forward, list[Any]()

    @functools.wraps(plain)
    def forward(*args: Any, **more: Any) -> Any:
        if len(kept) % 2 and more["input_ids"].shape[1] == 1:
            kept.append(kept[-1])
        else:
            kept.append(plain(*args, **more))
        return kept[-1]

    model.forward = forward

    def mend() -> None:
        del model.forward

    return mend


def prompt_kept(model: Any) -> Callable[[], None]:
    """All but the prompt's last token comes from a pass that nobody measured."""
    plain = model.forward

    @functools.wraps(plain)
    def forward(*args: Any, **more: Any) -> Any:
        ids, cache = more["input_ids"], more["past_key_values"]
        if ids.shape[1] > 1:
            embed = model.get_input_embeddings().forward
            model.model(inputs_embeds=embed(ids[:, :-1]), past_key_values=cache, use_cache=True)
            more |= {"input_ids": ids[:, -1:], "position_ids": None}
        return plain(*args, **more)

    model.forward = forward

    def mend() -> None:
        del model.forward

    return mend


def other_texts_elsewhere(model: Any) -> Callable[[], None]:
    """All texts of a batch but the first take the token beside the likeliest."""
    plain = model.forward

    @functools.wraps(plain)
    def forward(*args: Any, **more: Any) -> Any:
        found = plain(*args, **more)
        found.logits[1:] = found.logits[1:].roll(1, -1)
        return found

    model.forward = forward

    def mend() -> None:
        del model.forward

    return mend


def measured(change: Callable[[Any], Callable[[], None]]) -> Patch:
    return lambda: while_measured(change)


def _sampled(choice: str, manner: str, patch: Patch, narrow: bool = False, **work: Any) -> Sabotage:
    beside: tuple[tuple[str, str], ...] = (("cache", "static"),) if choice == "own" else ()
    beside += (("dtype", "bfloat16"),) if narrow else ()
    drawn = {"temperature": 0.8, "seed": 7, "max_new_tokens": 24} | work
    return Sabotage(
        "loop", choice, manner, patch, beside, work=tuple(drawn.items()), turns_to=("partial",), tier="full"
    )


def _greedy(choice: str, manner: str, patch: Patch) -> Sabotage:
    return _sampled(choice, manner, patch, temperature=0.0)


SABOTEURS = [
    _sampled("generate", "another seed", another_seed),
    _sampled("generate", "the temperature is ignored", sampled_otherwise(temperature=1.0), temperature=2.0),
    _sampled("generate", "greedy all the same", sampled_otherwise(do_sample=False, temperature=None)),
    _sampled("generate", "top_k is ignored", sampled_otherwise(top_k=0), temperature=2.0, top_k=3),
    _sampled("generate", "top_p is ignored", sampled_otherwise(top_p=1.0), top_p=0.5, max_new_tokens=48),
    _sampled("generate", "top_p is ignored in bfloat16", sampled_otherwise(top_p=1.0), True, temperature=1.0, top_p=0.5,
             max_new_tokens=48),
    _sampled("generate", "top_k is ignored in bfloat16", sampled_otherwise(top_k=0), True, temperature=1.5, top_k=2),
    _sampled("own", "top_p is ignored in bfloat16",
             own_sampled_otherwise(lambda how, seed: (Sampling(how.temperature, how.top_k, 1.0), seed)), True,
             temperature=1.0, top_p=0.5, max_new_tokens=48),
    _sampled("own", "another seed", own_sampled_otherwise(lambda how, seed: (how, seed + 1))),
    _sampled(
        "own", "the temperature is ignored",
        own_sampled_otherwise(lambda how, seed: (Sampling(1.0, how.top_k, how.top_p), seed)), temperature=2.0,
    ),
    _greedy("generate", "the second likeliest in place of the likeliest", the_second),
    _greedy("generate", "half as many tokens as were asked for", half_as_many),
    _greedy("generate", "another prompt of the same length", another_prompt),
    _greedy("generate", "half of the layers without MLP in the measured run", measured(without_mlps)),
    _greedy("generate", "each second pass is left out", measured(every_other_pass)),
    _greedy("generate", "the prompt is computed elsewhere", measured(prompt_kept)),
    *(
        _sampled(choice, f"other texts of a batch go elsewhere at temperature {temperature}",
                 measured(other_texts_elsewhere), batch_size=4, temperature=temperature)
        for choice in ("generate", "own")
        for temperature in (0.0, 0.8)
    ),
    _greedy("own", "each pass is made twice", computed_twice),
    _greedy("own", "half of the layers without MLP in the measured run", measured(without_mlps)),
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)


@pytest.mark.slow
@pytest.mark.parametrize(("cache", "checked"), [("dynamic", True), ("quantized-fp8", False)])
def test_tokens_that_nobody_can_check_do_not_count_as_verified(cache: str, checked: bool) -> None:
    """A wrong seed turns the row where tokens are checked. Elsewhere it cannot be seen, and the ledger says so."""
    work: dict[str, Any] = {"temperature": 0.8, "seed": 7, "max_new_tokens": 24}
    arm = {"cache": cache, "dtype": "float32"}
    control = row_of_the_loop(run_of(arm, llama(), **work))
    with another_seed():
        broken = row_of_the_loop(run_of(arm, llama(), **work))
    assert (control.standing, broken.standing) == (("verified", "partial") if checked else ("unchecked", "unchecked"))
    assert ("quantized cache rounds" in broken.reason) is not checked


def row_of_the_loop(run: Run) -> LedgerRow:
    rows = prompt_rows(run.ledger("A"))
    (row,) = (row for row in rows if row.axis == "loop")
    assert ("with unchecked tokens" in ledger_summary(rows)) is row.unchecked
    return row
