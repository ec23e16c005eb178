"""loop: whose steps they were is seen in a profile; what it refuses does fail when it is done all the same."""

from collections import Counter
from typing import Any

import pytest
import torch

from tests.backend.worker.witness.test_findings import found, run, workers  # noqa: F401
from tests.support.decode_loop import NEW, Told, greedy, own, prompt
from tests.support.local_worker import LocalWorker
from tests.support.machines import CPU, H200, facts
from tests.support.scripts import preamble
from tests.support.tiny_models import tiny
from tests.support.worker import SENTENCE, plan_of
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.counts import counts_of
from tokendyno.backend.hardware import detect
from tokendyno.backend.messages import Finished, Generate, Tokens
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.optimizations.axes.loop import LOOP_NAME, STEP_NAME
from tokendyno.backend.plan import STATIC, STATIC_FP8, GeneratePlan, LoadPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import Trace
from tokendyno.backend.worker.witness import find

AXIS = next(axis for axis in all_axes() if axis.name == "loop")
OWN: dict[str, Any] = {"loop": "own", "cache": "static", "dtype": "float32"}


def text(worker: Any) -> str:
    return next(e.text for e in worker.events if isinstance(e, Finished))


def test_own_is_found_own_and_generate_generate_in_one_process(workers: dict[str, Any]) -> None:  # noqa: F811
    """The worker keeps the loop between such runs. The text and the bytes of the cache are the same."""
    texts, kv = [], []
    arms: tuple[dict[str, Any], ...] = (OWN, OWN | {"loop": "generate"}, OWN, {"dtype": "float32"})
    for choices in arms:
        _, worker = run(workers, "pocket", length=16, **choices)
        assert found(worker)["loop"].effective == choices.get("loop", "generate")
        assert found(worker)["cache"].effective == choices.get("cache", "dynamic")
        texts.append(text(worker))
        kv.append([b for e in worker.events if isinstance(e, Tokens) for b in e.kv_sliding])
    assert len(set(texts)) == 1
    assert kv[0] == kv[1] == kv[2]
    assert len(kv[0]) == 16


PACKED = [
    c.name if c.name in ("bnb-nf4", "torchao-int8") else pytest.param(c.name, marks=pytest.mark.full)
    for c in next(axis for axis in all_axes() if axis.name == "quantization").choices
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of the libraries that pack
@pytest.mark.parametrize("quantization", PACKED)
def test_it_takes_every_quantization_that_generate_takes_here(
    quantization: str,
    workers: dict[str, Any],  # noqa: F811
) -> None:
    """The same greedy tokens from the same packed weights; what is refused is refused for both."""
    blocked, texts = [], []
    for choices in (OWN, OWN | {"loop": "generate"}):
        config = make_config("pocket", {**choices, "quantization": quantization})
        blocked.append(bool(check(config, resolve("pocket"), detect(), Workload(prompt="x")).blocked))
        if not blocked[-1]:
            _, worker = run(workers, "pocket", length=40, quantization=quantization, **choices)
            assert found(worker)["loop"].effective == choices.get("loop", "generate")
            texts.append(text(worker))
    assert blocked[0] == blocked[1] and len(set(texts)) == (not blocked[0])


def test_one_token_is_told_apart_too(workers: dict[str, Any]) -> None:  # noqa: F811
    _, worker = run(workers, "pocket", length=1, **OWN)
    assert found(worker)["loop"].effective == "own"


def test_a_temperature_is_the_same_text_for_the_same_seed() -> None:
    plan = plan_of("pocket", **OWN)
    worker, texts = LocalWorker(plan.load), []
    for seed in (1, 1, 2):
        worker.run(Generate(plan, SENTENCE, 8, 20, 2, 1.0, seed, True, False, 40, 0.95, prove=False))
        texts.append(text(worker))
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.parametrize(
    ("more", "axis", "fix"),
    [
        ({"cache": "dynamic"}, "cache", "static"),
        ({"cache": "static", "attention": "flex_attention"}, "attention", "auto"),
        ({"cache": "static", "speculation": "prompt-lookup"}, "speculation", "off"),
    ],
)
def test_what_it_cannot_do_is_refused_with_a_fix(more: dict[str, str], axis: str, fix: str) -> None:
    verdicts = check(make_config("pocket", {"loop": "own"} | more), facts(), H200, Workload(prompt="x")).verdicts
    ours = [v for v in verdicts if v.axis == "loop" and v.level == "blocked"]
    assert [v.fix for v in ours if axis in v.fix] == [{axis: fix}]


# --- the script -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compile_mode", "graphs", "loop"),
    [
        (None, "auto", "DecodeLoop(model, pad, eos)"),
        ("default", "auto", 'DecodeLoop(model, pad, eos, compile_mode="default")'),
        (None, "manual", "DecodeLoop(model, pad, eos, cuda_graph=True)"),
    ],
)
def test_a_script_runs_the_workers_own_loop(compile_mode: str | None, graphs: Any, loop: str) -> None:
    script = Script()
    AXIS.write(
        script, Plan(LoadPlan(ModelSource("random")), GeneratePlan(STATIC, compile_mode, "torch", graphs, "own"))
    )
    assert script.loop == loop
    names: dict[str, Any] = {"pad": 0, "eos": [], "MAX_LENGTH": 5 + NEW}
    exec(preamble(script), names)
    if compile_mode or graphs == "manual":
        return
    for architecture in ("olmo3", "falcon_h1"):
        names["model"] = model = tiny(architecture)
        request = prompt(5)
        made, cache = eval(script.loop, names), eval(script.cache, names)
        with torch.no_grad():
            for _ in range(2):
                assert torch.equal(made.generate(request.ids, request.mask, cache, NEW, Told()), greedy(model, request))


def test_a_script_makes_the_cache_in_8_bits_and_reads_the_same_text_from_it() -> None:
    script = Script()
    AXIS.write(script, Plan(LoadPlan(ModelSource("random")), GeneratePlan(STATIC_FP8, loop="own")))
    model, request = tiny("llama"), prompt(9)
    names: dict[str, Any] = {"model": model, "pad": 0, "eos": [], "MAX_LENGTH": 9 + NEW}
    exec(preamble(script), names)
    made, cache = eval(script.loop, names), eval(script.cache, names)
    with torch.no_grad():
        ids = made.generate(request.ids, request.mask, cache, NEW, Told())
    assert [type(layer).__name__ for layer in cache.layers] == ["StaticFp8SlotLayer"] * len(cache.layers)
    assert torch.equal(ids, own(model, request, cache=StaticSlotCache(model.config, 9 + NEW, eight_bits=True)))


# --- what really happens --------------------------------------------------------------------------


def test_a_growing_cache_cannot_take_the_place_of_the_static_one() -> None:
    from transformers import DynamicCache

    with pytest.raises(AttributeError):
        own(tiny("llama"), prompt(5), 2, cache=DynamicCache())


@pytest.mark.parametrize(
    ("own", "passes", "traced", "steps", "reached"),
    [
        (7, 8, 3, 4, 10),
        (9, 8, 5, 4, 10),
        (6, 8, 3, 4, 9),
        (7, 8, 0, 4, 7),
        (0, 8, 3, 4, 3),
        (0, 1, 0, 1, 0),
        (1, 1, 0, 1, 0),
    ],
)
def test_steps_of_the_run_and_of_the_profile_are_counted_beside_a_prefill_each(
    own: int, passes: int, traced: int, steps: int, reached: int
) -> None:
    plan = check(make_config("pocket", OWN), facts(), CPU, Workload(prompt="x")).plan
    trace = Trace(Counter({LOOP_NAME: 1, STEP_NAME: traced}), Counter(), Counter(), steps)
    finding = find(
        "loop", Observation(object(), None, plan, lambda: trace, counts_of({"own_steps": own, "passes": passes}))
    )
    assert (finding.effective, finding.reached, finding.expected) == ("own", reached, passes - 1 + steps - 1)
    assert finding.proof.startswith(f"a prefill and {own} steps of the custom decode loop in a run of {passes} passes")


@pytest.mark.parametrize(("passes", "reached", "expected"), [(1, 1, 1), (5, 5, 5), (0, 0, 1)])
def test_every_pass_without_a_step_of_our_loop_counts_for_generate(passes: int, reached: int, expected: int) -> None:
    plan = Plan(LoadPlan(ModelSource("random")))
    seen = find("loop", Observation(None, None, plan, counts=counts_of({"passes": passes})))
    assert (seen.effective, seen.reached, seen.expected) == ("generate", reached, expected)
