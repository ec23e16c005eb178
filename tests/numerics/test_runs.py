"""Whole runs of a worker against `generate` with the same weights, ids, seed and settings."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pytest
import torch
from transformers import AutoModelForCausalLM, ContinuousBatchingManager

from tests.sabotage.small_models import llama, mistral, mixtral
from tests.support.decode_loop import generated
from tests.support.local_worker import LocalWorker
from tests.support.worker import SENTENCE, job_of, plan_of, traffic_job
from tokendyno.backend.messages import RequestEnds, Steps, Waits
from tokendyno.backend.plan import BatchPlan
from tokendyno.backend.runs.batch_series import BatchSeries
from tokendyno.backend.traffic.presets import drawn
from tokendyno.backend.traffic.requests import Draw
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.prompt import read_requests
from tokendyno.backend.worker.runners.token_loops import Caches

NEW = 16
MODELS = {"llama": llama, "mistral": mistral, "mixtral": mixtral}
_loaded: dict[Any, LocalWorker] = {}


def worker_of(architecture: str, **choices: str) -> LocalWorker:
    """A worker in float32. Matrices are scaled up, so that a step's words differ clearly."""
    plan = plan_of(MODELS[architecture](), dtype="float32", **choices)
    if (architecture, plan.load) not in _loaded:
        worker = _loaded[architecture, plan.load] = LocalWorker(plan.load)
        with torch.no_grad():
            for parameter in worker.model.model.parameters():
                if parameter.ndim > 1:
                    parameter.mul_(3)
    return _loaded[architecture, plan.load]


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    yield
    _loaded.clear()


@contextmanager
def recorded(kind: type, name: str) -> Iterator[list[Any]]:
    """What a method returned, call by call."""
    results, original = list[Any](), getattr(kind, name)

    def method(*args: Any, **kwargs: Any) -> Any:
        results.append(original(*args, **kwargs))
        return results[-1]

    with mock.patch.object(kind, name, method):
        yield results


def run(architecture: str, choices: dict[str, str], **work: Any) -> Any:
    """Ids (B, P and more) of a run."""
    worker, plan = worker_of(architecture, **choices), plan_of(MODELS[architecture](), dtype="float32", **choices)
    kind: Any = DecodeLoop if choices.get("loop") == "own" else type(worker.model.model)
    with recorded(kind, "generate") as texts:
        worker.run(job_of(plan, **{"max_new_tokens": NEW} | work))
    return texts[-1]


def expected(architecture: str, prompt: str = SENTENCE, tokens: int = 0, rows: int = 1, **settings: Any) -> Any:
    """The same of transformers, by a model that no choice has changed."""
    model = worker_of(architecture).model
    ids = model.tokenizer(prompt, return_tensors="pt")["input_ids"]
    if tokens:
        ids = ids.repeat(1, tokens // ids.shape[1] + 1)[:, :tokens]
    return generated(model.model, ids.expand(rows, -1), new=NEW, **settings).sequences


OWN = {"cache": "static", "loop": "own"}
GREEDY: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "default": ({}, {}),
    "static": ({"cache": "static"}, {}),
    "static batch": ({"cache": "static"}, {"batch_size": 3}),
    "own": (OWN, {}),
    "own batch": (OWN, {"batch_size": 3}),
    "fused": ({"projections": "fused"}, {}),
    "own fused": (OWN | {"projections": "fused"}, {}),
    "buckets": ({"shapes": "buckets"}, {}),
    "own buckets": (OWN | {"shapes": "buckets"}, {}),
    "eager": ({"attention": "eager"}, {}),
    "chunks": ({"prefill": "chunks-512"}, {"prompt_tokens": 600}),
    "own chunks": (OWN | {"prefill": "chunks-512"}, {"prompt_tokens": 600}),
    "prompt lookup": ({"speculation": "prompt-lookup"}, {}),
}


IN_EVERY_MODEL = ("default", "own batch", "own fused", "own chunks")


@pytest.mark.parametrize(
    ("architecture", "case"),
    [(model, case) for case in GREEDY for model in MODELS if model == "llama" or case in IN_EVERY_MODEL],
)
def test_greedy_text_is_that_of_generate(architecture: str, case: str) -> None:
    """Of as many tokens as were asked for, in each row. Padding stands before the prompt."""
    choices, work = GREEDY[case]
    reference = expected(architecture, tokens=work.get("prompt_tokens", 0), rows=work.get("batch_size", 1))
    ids = run(architecture, choices, **work)
    assert torch.equal(ids[:, -reference.shape[1] :], reference)
    assert not (ids[:, : -reference.shape[1]] != worker_of(architecture).model.pad).any()


SAMPLED: dict[str, dict[str, Any]] = {
    "warm": {"temperature": 2.0},
    "top k": {"temperature": 2.0, "top_k": 3},
    "top p": {"temperature": 1.0, "top_p": 0.5},
}


@pytest.mark.parametrize("case", SAMPLED)
@pytest.mark.parametrize("rows", [1, 4])
def test_sampled_text_is_that_of_generate_with_the_same_seed(case: str, rows: int) -> None:
    settings: dict[str, Any] = {"top_k": 0, "top_p": 1.0} | SAMPLED[case]
    worker_of("llama")
    torch.manual_seed(7)
    reference = expected("llama", rows=rows, do_sample=True, **settings)
    assert torch.equal(run("llama", {}, seed=7, batch_size=rows, **settings), reference)
    assert not torch.equal(reference, expected("llama", rows=rows))


def test_draft_tokens_leave_a_sampled_text_to_its_seed() -> None:
    settings: dict[str, Any] = {"temperature": 0.5, "top_k": 0, "top_p": 1.0}
    choices = {"speculation": "prompt-lookup"}
    drafts = plan_of(llama(), **choices).generate.prompt_lookup
    worker_of("llama")
    torch.manual_seed(7)
    reference = expected("llama", do_sample=True, prompt_lookup_num_tokens=drafts, **settings)
    ids = run("llama", choices, seed=7, **settings)
    assert torch.equal(ids, reference)


@pytest.mark.parametrize("batch", [{"kind": "static"}, {"kind": "continuous", "step_tokens": 32, "page_tokens": 16}])
@pytest.mark.parametrize("architecture", MODELS)
def test_each_of_many_requests_gets_the_text_that_it_gets_alone(architecture: str, batch: dict[str, Any]) -> None:
    worker, traffic = worker_of(architecture), drawn(Draw(5, (5, 40), (3, 12)), 1, 3)
    worker.run(traffic_job(plan_of(MODELS[architecture](), dtype="float32"), traffic, BatchPlan(**batch)))
    series = BatchSeries()
    for event in worker.events:
        if isinstance(event, Steps | Waits | RequestEnds):
            series.take(event)
    for request in read_requests(worker.model, traffic.requests):
        ids = torch.tensor([request.ids])
        alone = generated(worker.model.model, ids, new=request.max_new_tokens).sequences[0, ids.shape[1] :]
        assert series.requests[request.number].ids == alone.tolist()


def test_pages_are_freed_before_the_next_run_takes_its_own() -> None:
    """Two caches at once would be a peak of memory that no run has alone."""
    worker, made = worker_of("llama"), list[Any]()
    job = traffic_job(plan_of(llama(), dtype="float32"), drawn(Draw(3, (5, 5), (3, 3)), 1, 2), BatchPlan("continuous"))
    create = ContinuousBatchingManager._create_batch_processor

    def created(manager: Any) -> Any:
        assert not [one for one in made if one() is not None]
        processor = create(manager)
        made.append(weakref.ref(processor.cache))
        return processor

    with mock.patch.object(ContinuousBatchingManager, "_create_batch_processor", created):
        worker.run(job)
        worker.run(job)
    assert len(made) >= 2


@pytest.mark.parametrize(
    ("kind", "similarity"), [("quantized-fp8", 0.99), ("quantized-quanto4", 0.95), ("quantized-hqq4", 0.95)]
)
def test_a_quantized_cache_hands_out_what_it_was_given(kind: str, similarity: float) -> None:
    """As far as its bits go: a neighbour's numbers have nothing to do with a token's."""
    plan = plan_of(llama(), cache=kind).generate
    cache = Caches(worker_of("llama").model.model.config).make(plan, 1, 0)
    torch.manual_seed(0)
    prompt = torch.randn(2, 1, 2, 64, 16)
    token = torch.randn(2, 1, 2, 1, 16)
    cache.update(*prompt, 0)
    for states, cached in zip(torch.cat([prompt, token], -2), cache.update(*token, 0), strict=True):
        likeness = torch.nn.functional.cosine_similarity(cached.float(), states, dim=-1)
        assert cached.shape == states.shape and likeness.min() > similarity


@pytest.mark.parametrize("architecture", MODELS)
def test_a_loaded_model_gives_the_logits_of_one_that_transformers_builds(architecture: str) -> None:
    """Buffers that are in no file, such as those that turn positions, included."""
    loaded = worker_of(architecture).model.model
    built = AutoModelForCausalLM.from_config(loaded.config, dtype=torch.float32).eval()
    built.load_state_dict(loaded.state_dict())
    ids = torch.arange(3, 40)[None]
    with torch.inference_mode():
        torch.testing.assert_close(loaded(ids).logits, built(ids).logits, atol=1e-5, rtol=1e-5)
