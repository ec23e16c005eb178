"""loop: whose steps they were is seen in a profile; what it refuses does fail when it is done all the same."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from backend.arms import make_config
from backend.config import Workload
from backend.errors import InputError
from backend.hardware import machine
from backend.messages import Finished, Tokens
from backend.models import resolve
from backend.optimizations import Seen, axes
from backend.plan import GeneratePlan
from backend.rules import check
from tests.backend.worker.test_evidence import decoders, folder, found, run  # noqa: F401
from tests.backend.worker.test_own import NEW, greedy, own, prompt
from tests.facts import CPU, H200, facts, settled
from tests.tiny import CONFIGS, WINDOW, tiny

AXIS = next(axis for axis in axes() if axis.name == "loop")
OWN: dict[str, Any] = {"loop": "own", "cache": "static"}


def text(decoder: Any) -> str:
    return next(e.text for e in decoder.outbox.events if isinstance(e, Finished))


def test_own_is_found_own_and_generate_generate_in_one_process(decoders: dict[str, Any]) -> None:  # noqa: F811
    """The worker keeps the loop between such runs. The text and the bytes of the cache are the same."""
    texts, kv = [], []
    arms: tuple[dict[str, Any], ...] = (OWN, {"cache": "static"}, OWN, {})
    for choices in arms:
        _, decoder = run(decoders, "pocket", length=40, **choices)
        assert found(decoder)["loop"].effective == choices.get("loop", "generate")
        assert found(decoder)["cache"].effective == choices.get("cache", "dynamic")
        texts.append(text(decoder))
        kv.append([b for e in decoder.outbox.events if isinstance(e, Tokens) for b in e.kv_sliding])
    assert len(set(texts)) == 1
    assert kv[0] == kv[1] == kv[2]
    assert len(kv[0]) == 40


PACKED = [c.name for c in next(axis for axis in axes() if axis.name == "quantization").choices]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of the libraries that pack
@pytest.mark.parametrize("quantization", PACKED)
def test_it_takes_every_quantization_that_generate_takes_here(
    quantization: str,
    decoders: dict[str, Any],  # noqa: F811
) -> None:
    """The same greedy tokens from the same packed weights; what is refused is refused for both."""
    blocked, texts = [], []
    for choices in (OWN, {"cache": "static"}):
        config = make_config("pocket", {**choices, "quantization": quantization})
        blocked.append(bool(check(config, resolve("pocket"), machine(), Workload(prompt="x")).blocked))
        if not blocked[-1]:
            _, decoder = run(decoders, "pocket", length=40, quantization=quantization, **choices)
            assert found(decoder)["loop"].effective == choices.get("loop", "generate")
            texts.append(text(decoder))
    assert blocked[0] == blocked[1] and len(set(texts)) == (not blocked[0])


def test_one_token_is_told_apart_too(decoders: dict[str, Any]) -> None:  # noqa: F811
    _, decoder = run(decoders, "pocket", length=1, **OWN)
    assert found(decoder)["loop"].effective == "own"


def test_a_model_without_a_run_shows_no_step_of_ours() -> None:
    from backend.optimizations.base import NO_TRACE

    seen = Seen(object(), None, check(make_config("pocket", OWN), facts(), CPU, Workload(prompt="x")).plan)
    seen.trace = lambda: NO_TRACE
    assert not AXIS.verify("own", seen)
    assert AXIS.verify("generate", seen)


def test_a_temperature_is_the_same_text_for_the_same_seed(decoders: dict[str, Any]) -> None:  # noqa: F811
    from backend.messages import Generate
    from tests.helpers import SENTENCE

    plan, decoder = run(decoders, "pocket", **OWN)
    texts = []
    for seed in (1, 1, 2):
        decoder.outbox.events.clear()
        decoder.run(Generate(plan, SENTENCE, 8, 20, 2, 1.0, seed, True, True, 40, 0.95))
        texts.append(text(decoder))
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("more", "axis", "fix"),
    [
        ({"cache": "dynamic"}, "cache", "static"),
        ({"cache": "static", "attention": "flex_attention"}, "attention", "eager"),
        ({"cache": "static", "speculation": "prompt-lookup"}, "speculation", "off"),
    ],
)
def test_what_it_cannot_do_is_refused_with_a_fix(more: dict[str, str], axis: str, fix: str) -> None:
    verdicts = check(make_config("pocket", {"loop": "own"} | more), facts(), H200, Workload(prompt="x")).verdicts
    ours = [v for v in verdicts if v.axis == "loop" and v.level == "blocked"]
    assert [v.fix for v in ours if axis in v.fix] == [{axis: fix}]


def test_after_the_fixes_it_runs_and_a_note_remains() -> None:
    for model in ("pocket", "random:Gemma-3-1b", "random:gpt2"):
        checked = settled(facts(model), {"loop": "own"}, H200)
        assert not checked.blocked
        assert checked.plan.generate.loop == "own"


# --- the script -----------------------------------------------------------------------------------


@pytest.mark.parametrize("attention", [None, "eager"])
@pytest.mark.parametrize("architecture", CONFIGS)
def test_the_loop_of_the_script_makes_the_same_tokens(architecture: str, attention: str | None) -> None:
    """In and past the window, padded, in batches, and again with the same cache."""
    import functools

    from transformers import StaticCache

    from backend.optimizations.loop_script import LOOP

    make = "            if self.advance is None:\n                self.advance = self._step\n"
    names: dict[str, Any] = {"torch": torch, "functools": functools, "StaticCache": StaticCache, "DEVICE": "cpu"}
    exec(LOOP.replace("CAPTURE", "").replace("MAKE", make), names)
    model = tiny(architecture, attention)
    for asked in (prompt(5), prompt(WINDOW), prompt(20, 3, padded=4), prompt(1)):
        cache = names["OwnLoop"](model, asked.ids.shape[1] + NEW)
        for _ in range(2):
            clock = SimpleNamespace(put=lambda tokens: None)
            made = cache.decode({"input_ids": asked.ids, "attention_mask": asked.mask}, NEW, clock)
            assert torch.equal(made, greedy(model, asked))


# --- what really happens --------------------------------------------------------------------------


def test_a_growing_cache_cannot_take_the_place_of_the_static_one() -> None:
    from transformers import DynamicCache

    with pytest.raises(AttributeError):
        own(tiny("llama"), prompt(5), 2, cache=DynamicCache())


@pytest.mark.parametrize("attention", ["flex_attention"])
def test_attention_without_a_4d_mask_is_refused_by_the_worker_as_well(attention: str) -> None:
    with pytest.raises(InputError, match="4D mask"):
        own(tiny("llama", attention), prompt(5), 2)


def test_the_stock_sliding_layer_asks_the_host_and_rolls(folder: Path) -> None:  # noqa: F811
    """Why the loop has layers of its own: past the window the stock layer changes its way, and what it looks at."""
    from transformers import MistralConfig, StaticCache

    config = MistralConfig(
        num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1, head_dim=2, sliding_window=4
    )
    cache = StaticCache(config=config, max_cache_len=16)
    for step in range(6):
        key = torch.full((1, 1, 1, 2), float(step))
        keys, _ = cache.update(key, key, 0)
    assert keys[0, 0, :, 0].tolist() == [2, 3, 4, 5]
    assert int(cache.layers[0].cumulative_length) == 4
    assert cache.layers[0].cumulative_length_int == 6


def test_this_machine_can_run_it() -> None:
    assert not settled(facts(), {"loop": "own"}, machine()).blocked
    assert GeneratePlan(cache="static", loop="own").cuda_graphs == "auto"
