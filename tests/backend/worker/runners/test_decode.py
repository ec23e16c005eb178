"""Runs of the embedded model as a worker makes them: caches, shapes, speculation and sampling, proved and alike."""

from typing import Any

import msgspec
import pytest

from tests.support.kv import kv_series
from tests.support.local_worker import LocalWorker
from tests.support.worker import SENTENCE, column, only, plan_of
from tokendyno.backend.evidence import TOKENS
from tokendyno.backend.messages import Finished, Generate, Started, Tokens
from tokendyno.backend.models import resolve
from tokendyno.backend.plan import CACHES, DYNAMIC

NEW = 24
TWICE = "Pip has a red ball. Tim has a blue ball. Pip has a red ball. Tim has a"


class Bench:
    """One loaded model in float32, run after run."""

    def __init__(self, model: str) -> None:
        self.model, self.worker = model, LocalWorker(plan_of(model, dtype="float32").load)

    def run(self, prompt: str = SENTENCE, work: Any = None, **choices: str) -> Finished:
        """`work`: fields of the command that are not the usual ones."""
        plan = plan_of(self.model, **{"dtype": "float32"} | choices)
        job = Generate(plan, prompt, 0, NEW, 1, 0.0, 0, ignore_eos=True, warmup=False)
        return self.worker.run(msgspec.structs.replace(job, **work or {}))

    @property
    def ids(self) -> list[int]:
        return column(self.worker.events, "ids")

    @property
    def started(self) -> Started:
        return only(self.worker.events, Started)[0]


def effective(finished: Finished) -> dict[str, str]:
    return {row.axis: row.effective for row in finished.findings}


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench("pocket")


@pytest.fixture(scope="module")
def plain(bench: Bench) -> tuple[Finished, Started, list[int]]:
    """A run without any choice: its end, its beginning and its ids."""
    return bench.run(), bench.started, list(bench.ids)


@pytest.fixture(scope="module")
def greedy(plain: tuple[Finished, Started, list[int]]) -> list[int]:
    return plain[2]


@pytest.mark.parametrize(
    ("choices", "positions", "places"),
    [({"shapes": "padded"}, 512, 1024), ({"shapes": "buckets", "cache": "static"}, 64, 128)],
)
def test_rounded_lengths_are_proved_and_keep_the_text_and_the_prediction(
    choices: dict[str, str], positions: int, places: int, bench: Bench, greedy: list[int]
) -> None:
    finished = bench.run(**choices)
    assert bench.ids == greedy
    assert effective(finished)["shapes"] == choices["shapes"]
    started, padding = bench.started, finished.counts.prompt.padding
    assert (started.prompt_tokens, started.places) == (positions, places)
    assert padding / positions > 0.5
    assert any(f"padded to {positions:,}" in note for note in started.notes)
    cache = CACHES[choices.get("cache", "dynamic")]
    expected = kv_series(resolve("pocket"), cache, positions, NEW, 1, 4, started.places)
    assert column(bench.worker.events, "kv_sliding") == [at.sliding for at in expected]
    assert column(bench.worker.events, "kv_full") == [at.full for at in expected]


def test_prompt_lookup_makes_the_same_text_in_fewer_steps(bench: Bench) -> None:
    without = bench.run(TWICE)
    expected, latency_s = bench.ids, column(bench.worker.events, "latency_s")
    assert effective(without)["speculation"] == "off" and without.counts.drafts.lookups == 0
    guessed = bench.run(TWICE, speculation="prompt-lookup")
    assert bench.ids == expected and len(latency_s) == NEW
    drafts = guessed.counts.drafts
    assert effective(guessed)["speculation"] == "prompt-lookup"
    assert drafts.steps + drafts.accepted_tokens == NEW
    assert 0 < drafts.accepted_tokens <= drafts.draft_tokens
    times = column(bench.worker.events, "t_s")
    assert len(set(times)) == drafts.steps and times == sorted(times)
    assert sum(column(bench.worker.events, "latency_s")) == pytest.approx(times[-1])
    sizes = kv_series(resolve("pocket"), DYNAMIC, bench.started.prompt_tokens, NEW, 1, 4)[-1]
    last = only(bench.worker.events, Tokens)[-1]
    assert (last.kv_sliding[-1], last.kv_full[-1]) == (sizes.sliding, sizes.full)


def test_one_seed_is_one_text_and_the_likeliest_token_alone_is_greedy(bench: Bench, greedy: list[int]) -> None:
    texts: dict[str, list[int]] = {}
    sampled: dict[str, dict[str, Any]] = {
        "seed 1": {"seed": 1},
        "seed 1 again": {"seed": 1},
        "seed 2": {"seed": 2},
        "top_k 1": {"seed": 1, "top_k": 1},
        "top_p 0": {"seed": 1, "top_p": 1e-9},
        "top_k 2": {"seed": 1, "top_k": 2},
    }
    for name, work in sampled.items():
        bench.run(work={"temperature": 4.0, "prove": False, **work})
        texts[name] = list(bench.ids)
    assert texts["seed 1"] == texts["seed 1 again"] != texts["seed 2"]
    assert texts["top_k 1"] == texts["top_p 0"] == greedy
    assert texts["top_k 2"] not in (texts["seed 1"], greedy)


def test_exact_lengths_are_told_apart_and_tokens_have_a_row_of_their_own(
    bench: Bench, plain: tuple[Finished, Started, list[int]]
) -> None:
    finished, started, _ = plain
    assert effective(finished)["shapes"] == "exact" and finished.counts.prompt.padding == 0
    assert started.places == started.prompt_tokens + NEW
    (row,) = [finding for finding in finished.findings if finding.axis == TOKENS]
    assert (row.effective, row.reached, row.expected) == ("greedy", NEW, NEW)
    (row,) = [finding for finding in bench.run(work={"temperature": 1.0}).findings if finding.axis == TOKENS]
    assert (row.effective, row.outcome) == ("sampled", "unchecked")


@pytest.mark.filterwarnings("ignore")  # optimum-quanto's own, when it is imported
def test_a_quantized_cache_is_metered_and_proved_as_predicted(tmp_path: Any) -> None:
    """A model without windows; 140 tokens, so that the residual is quantized once."""
    import json

    from tests.support.tiny_models import CONFIGS

    config = CONFIGS["llama"] | {"model_type": "llama", "head_dim": 32, "num_hidden_layers": 2, "vocab_size": 300}
    (tmp_path / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 512, "dtype": "float32"}))
    bench = Bench(f"random:{tmp_path}")
    for kind in ("quantized-fp8", "quantized-hqq4", "quantized-quanto4"):
        finished = bench.run(work={"max_new_tokens": 140}, cache=kind)
        tokens = bench.started.prompt_tokens
        expected = kv_series(resolve(bench.model), CACHES[kind], tokens, 140, 1, 4)
        assert column(bench.worker.events, "kv_full") == [at.full for at in expected]
        assert effective(finished)["cache"] == kind
        assert "quantized cache" in next(finding.proof for finding in finished.findings if finding.axis == TOKENS)


def test_the_parts_of_a_traced_step_add_up(bench: Bench) -> None:
    step = bench.run(work={"max_new_tokens": 5}).step
    assert step is not None and step.steps == 3 and not step.gpu
    assert sum(step.parts_s.values()) == pytest.approx(step.seconds)
    assert min(step.parts_s[part] for part in ("attention", "products", "other", "host")) > 0
    unproved = bench.run(work={"max_new_tokens": 5, "prove": False})
    assert unproved.findings == [] and unproved.step is None and unproved.no_step
