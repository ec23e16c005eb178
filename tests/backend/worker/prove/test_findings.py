"""Every axis's proof, on real tiny models: true for what is on, false for what is off."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_worker import LocalWorker
from tests.support.proof import verify
from tests.support.worker import SENTENCE, plan_of
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.evidence import Finding
from tokendyno.backend.hardware import detect
from tokendyno.backend.messages import Event, Finished, Generate, Progress, Started
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations import Observation, all_axes
from tokendyno.backend.plan import Plan

torch = pytest.importorskip("torch")

SHAPE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "dtype": "float32",
}
MODELS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "architectures": ["LlamaForCausalLM"]},
    "mistral": {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 16},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import json

    base = tmp_path_factory.mktemp("models")
    for name, more in MODELS.items():
        (base / name).mkdir()
        (base / name / "config.json").write_text(json.dumps(SHAPE | more))
    return base


@pytest.fixture
def workers() -> Iterator[dict[str, Any]]:
    """Workers by load key, so that one test's arms share what a worker would share."""
    yield {}
    torch._dynamo.reset()


def run(
    workers: dict[str, Any], model: str, act: Any = None, length: int = 24, warmup: bool = False, **choices: str
) -> tuple[Plan, Any]:
    """Do in this process what a worker does; returns the plan and the recorder of its events."""
    plan = check(make_config(model, choices), resolve(model), detect(), Workload(prompt=SENTENCE)).plan
    if plan.load_key not in workers:
        workers[plan.load_key] = LocalWorker(plan.load)
    worker = workers[plan.load_key]
    worker.act = act or (lambda event: None)
    worker.run(Generate(plan, SENTENCE, 8, length, 1, 0.0, 0, ignore_eos=True, warmup=warmup))
    return plan, worker


def found(worker: Any) -> dict[str, Finding]:
    (finished,) = (event for event in worker.events if isinstance(event, Finished))
    return {finding.axis: finding for finding in finished.findings}


def only_true(axis_name: str, worker: Any, cache: Any, plan: Plan) -> str:
    """The one choice that an axis finds in effect, of all that it has."""
    axis = next(axis for axis in all_axes() if axis.name == axis_name)
    yes = [c.name for c in axis.choices if verify(axis, c.name, Observation(worker.model.model, cache, plan))]
    assert len(yes) == 1, yes
    return yes[0]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_dtype_is_verified_for_the_dtype_of_the_weights_and_for_no_other(
    dtype: str, folder: Path, workers: dict[str, Any]
) -> None:
    plan, worker = run(workers, f"random:{folder / 'llama'}", dtype=dtype)
    assert found(worker)["dtype"].effective == dtype
    assert only_true("dtype", worker, None, plan) == dtype
    worker.model.model.to(torch.float64)
    assert found(worker)["dtype"].effective == dtype  # the record of the run stays
    axis = next(axis for axis in all_axes() if axis.name == "dtype")
    assert not any(verify(axis, c.name, Observation(worker.model.model, None, plan)) for c in axis.choices)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_attention_is_verified_by_what_was_dispatched(attention: str, folder: Path, workers: dict[str, Any]) -> None:
    plan, worker = run(workers, f"random:{folder / 'llama'}", attention=attention)
    assert found(worker)["attention"].effective == attention
    assert only_true("attention", worker, None, plan) == attention
    other = {"eager": "sdpa", "sdpa": "eager"}[attention]
    worker.model.model.set_attn_implementation(other)
    assert only_true("attention", worker, None, plan) == other, "the plan was believed, not the model"


def test_sdpa_on_a_model_with_sinks_is_found_to_be_eager(workers: dict[str, Any]) -> None:
    _, worker = run(workers, "pocket", attention="sdpa")
    assert found(worker)["attention"].effective == "eager"


@pytest.mark.parametrize("cache", ["dynamic", "unwindowed", "static"])
def test_cache_is_verified_by_the_layers_that_were_filled(cache: str, folder: Path, workers: dict[str, Any]) -> None:
    from transformers import DynamicCache, StaticCache

    plan, worker = run(workers, f"random:{folder / 'mistral'}", cache=cache)
    assert found(worker)["cache"].effective == cache
    config = worker.model.model.config
    made = {
        "dynamic": DynamicCache(config=config),
        "unwindowed": DynamicCache(),
        "static": StaticCache(config=config, max_cache_len=16),
    }
    for kind, filled in made.items():
        worker.model.model(torch.tensor([[1, 2, 3]]), past_key_values=filled)
        assert only_true("cache", worker, filled, plan) == kind, "the plan was believed, not the cache"


def test_compile_is_found_off_when_nothing_was_compiled(folder: Path, workers: dict[str, Any]) -> None:
    _, worker = run(workers, f"random:{folder / 'llama'}", cache="static")
    assert found(worker)["compile"].effective == "off"


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_compile_is_found_on_then_off_then_on_again_in_one_process(folder: Path, workers: dict[str, Any]) -> None:
    """The worker keeps the model between such runs, and with it the compiled call."""
    name = f"random:{folder / 'llama'}"
    told = []
    for compile_mode in ("default", "off", "default"):
        _, worker = run(workers, name, warmup=True, cache="static", compile=compile_mode)
        told.append(found(worker)["compile"])
    assert [finding.effective for finding in told] == ["default", "off", "default"], told


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_a_compiled_run_past_the_window_compiles_nothing_while_it_is_measured(
    folder: Path, workers: dict[str, Any]
) -> None:
    """Its warm-up went past the window of 16, in a phase of its own called compile."""
    from torch._dynamo.utils import counters

    graphs: dict[str, int] = {}

    def look(event: Event) -> None:
        if isinstance(event, Started | Finished):
            graphs[type(event).__name__] = counters["stats"]["unique_graphs"]

    _, worker = run(workers, f"random:{folder / 'mistral'}", look, 40, True, cache="static", compile="default")
    assert graphs["Started"] == graphs["Finished"] > 0
    phases = [p.phase for p in worker.events if isinstance(p, Progress) and p.state == "begin"]
    assert phases == ["compile", "warmup", "run", "prove"]


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # the compiler's own
def test_compiled_greedy_text_is_that_of_the_plain_run(folder: Path, workers: dict[str, Any]) -> None:
    name = f"random:{folder / 'mistral'}"
    texts = []
    for choices in ({"cache": "static"}, {"cache": "static", "compile": "default"}, {}):
        _, worker = run(workers, name, length=40, warmup=True, **choices)
        texts.append(next(e.text for e in worker.events if isinstance(e, Finished)))
    assert texts[0] == texts[1] == texts[2]


def test_a_probe_that_fails_is_told_as_unknown_and_the_others_are_asked_all_the_same() -> None:
    from tokendyno.backend.worker.prove.findings import find_all

    findings = find_all(Observation(object(), None, plan_of()))
    assert [f.axis for f in findings] == [axis.name for axis in all_axes()]
    unknown = {f.axis: f.proof for f in findings if f.effective == "unknown"}
    assert {"dtype", "attention"} <= set(unknown) and all("probe failed" in proof for proof in unknown.values())
    assert {f.axis: f.effective for f in findings}["compile"] == "off", "it was asked all the same"
