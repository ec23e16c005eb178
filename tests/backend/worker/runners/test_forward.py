"""Forward passes of an encoder, and of a decoder that is not to generate: what is timed, what is proved, how it ends.
One tiny BERT for all but the last test."""

from pathlib import Path
from typing import Any

import pytest

from tests.sabotage.small_models import bert, llama
from tests.support.local_worker import LocalWorker
from tests.support.worker import SENTENCE, Talk, column, job_of, only
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import detect
from tokendyno.backend.messages import Event, Finished, Generate, Loaded, Progress, Started, Tokens
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.worker.prove.tokens import find_states

torch = pytest.importorskip("torch")

TOKENS = len(SENTENCE)  # a random model's tokenizer makes one of each byte


@pytest.fixture(scope="module")
def name() -> str:
    return bert(max_position_embeddings=64)


def judged(name: str, **choices: str) -> Checked:
    return check(make_config(name, choices), resolve(name), detect(), Workload(prompt=SENTENCE))


class Encoder(LocalWorker):
    """A loaded encoder in this process, with the events of its last run."""

    def __init__(self, name: str, **choices: str) -> None:
        self.checked = judged(name, **choices)
        super().__init__(self.checked.plan.load)
        self.make()

    def make(self) -> None:
        """Its runner, so that a test can cancel a run before it begins."""
        from tokendyno.backend.worker.runners.course import course_for

        self.runner = course_for(self.model, self.checked.plan, self.channel)

    def passes(self, plan: Any = None, **kwargs: Any) -> Finished:
        return self.run(job_of(plan or self.checked.plan, **{"max_new_tokens": 12, "warmup": True} | kwargs))


@pytest.fixture(scope="module")
def encoder(name: str) -> Encoder:
    return Encoder(name)


def test_every_pass_has_its_time_and_none_has_a_token_or_a_cache(encoder: Encoder) -> None:
    finished = encoder.passes(batch_size=3)
    (started,) = only(encoder.events, Started)
    assert (started.prompt_tokens, started.batch_size, started.max_new_tokens) == (TOKENS, 3, 12)
    t_s, latency_s = column(encoder.events, "t_s"), column(encoder.events, "latency_s")
    assert len(t_s) == len(latency_s) == 12
    assert t_s == sorted(t_s) and min(latency_s) > 0
    assert sum(latency_s) == pytest.approx(t_s[-1]) and t_s[-1] <= finished.wall_s
    for zeros in ("ids", "kv_sliding", "kv_full"):
        assert column(encoder.events, zeros) == [0] * 12
    assert {event.text for event in only(encoder.events, Tokens)} == {""}
    assert (finished.text, finished.reason, finished.clock) == ("", "length", "host clock after the pass")
    assert finished.peak_memory_bytes > 0


def test_the_prompt_is_cut_or_repeated_to_its_length(encoder: Encoder) -> None:
    for tokens in (5, 64):
        encoder.passes(prompt_tokens=tokens)
        assert only(encoder.events, Started)[0].prompt_tokens == tokens


def test_warming_up_is_a_phase_of_its_own_and_once_for_a_shape(encoder: Encoder) -> None:
    encoder.passes(prompt_tokens=7, prove=True)
    assert [p.phase for p in only(encoder.events, Progress) if p.state == "begin"] == ["warmup", "run", "prove"]
    encoder.passes(prompt_tokens=7)
    assert [p.phase for p in only(encoder.events, Progress) if p.state == "begin"] == ["run"]
    encoder.passes(prompt_tokens=7, batch_size=2)
    assert [p.phase for p in only(encoder.events, Progress) if p.state == "begin"] == ["warmup", "run"]


def test_padding_stands_on_the_right_and_changes_no_answer(name: str) -> None:
    """Positions are counted from the left: a padded text must mean what it means by itself."""
    from tokendyno.backend.worker.prompt import pad, read_prompt

    padded = Encoder(name, shapes="padded")
    padded.passes()
    (started,) = only(padded.events, Started)
    assert started.prompt_tokens == 64, "no further than there are positions"
    assert any("is padding" in note for note in started.notes)
    model, job = padded.model.model, Generate(padded.checked.plan, SENTENCE, 0, 0, 2, 0.0, 0, True, True)
    bare = read_prompt(padded.model, job)
    wide = pad(bare, "padded", 0, "right", 64)
    with torch.inference_mode():
        a, b = (model(input_ids=p.ids, attention_mask=p.mask).last_hidden_state for p in (bare, wide))
    assert wide.tokens == 64 > bare.tokens
    torch.testing.assert_close(b[:, : bare.tokens], a)


def test_every_axis_proves_that_its_default_was_in_effect(encoder: Encoder) -> None:
    *axes, tokens = encoder.passes(prove=True).findings
    findings = {finding.axis: finding for finding in axes}
    assert tokens.axis == "tokens" and set(findings) == {axis.name for axis in all_axes()}
    assert {n: f.effective for n, f in findings.items()} == dict(encoder.checked.planned), findings
    for axis in all_axes():
        if axis.decoders_only and not axis.many_requests:
            assert "no KV cache is kept" in findings[axis.name].proof


def test_a_prompt_with_more_tokens_than_positions_is_one_sentence(encoder: Encoder) -> None:
    with pytest.raises(InputError, match=r"65 tokens, but the model has 64 positions\. Shorten it\.$"):
        encoder.passes(prompt="x" * 65)
    assert encoder.passes(prompt="x" * 64, max_new_tokens=100).reason == "length", "passes need no positions"


def test_a_cancel_ends_it_with_what_was_measured(encoder: Encoder) -> None:
    stop = encoder.runner.session.cancelled

    def once_streaming(event: Event) -> None:
        if isinstance(event, Tokens):
            stop.set()

    encoder.act = once_streaming
    try:
        finished = encoder.passes(max_new_tokens=30_000)
    finally:
        encoder.act = lambda event: None
        stop.clear()
    passes = len(column(encoder.events, "t_s"))
    assert finished.reason == "cancelled" and finished.findings == []
    assert 0 < passes < 30_000


def test_weights_in_a_folder_are_those_of_the_passes(name: str, tmp_path: Path) -> None:
    """A checkpoint with a head of its own, as the Hub has it, loads as the encoder below it."""
    from transformers import BertConfig, BertForMaskedLM

    from tokendyno.backend.worker.load.random_weights import byte_tokenizer

    torch.manual_seed(0)
    saved = BertForMaskedLM(BertConfig.from_pretrained(name.removeprefix("random:")))
    saved.save_pretrained(tmp_path / "tiny")
    byte_tokenizer(300).save_pretrained(tmp_path / "tiny")
    loaded_encoder = Encoder(str(tmp_path / "tiny"))
    assert loaded_encoder.passes().reason == "length"
    loaded = loaded_encoder.model.model.encoder.layer[1].output.dense.weight
    assert torch.equal(loaded, saved.bert.encoder.layer[1].output.dense.weight)


def test_a_worker_process_runs_an_encoder_and_then_a_decoder(name: str, warm_worker: Talk) -> None:
    plan = judged(name).plan
    loaded = warm_worker.load(plan)
    assert isinstance(loaded, Loaded) and loaded.parameters == resolve(name).parameters
    events = warm_worker.generate(plan, max_new_tokens=5)
    assert column(events, "ids") == [0] * 5 and isinstance(events[-1], Finished)
    decoder = judged("pocket").plan
    events = warm_worker.generate(decoder, max_new_tokens=5)
    assert isinstance(events[-1], Finished) and events[-1].text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the packages
@pytest.mark.parametrize(
    "choices",
    [
        {"quantization": "bnb-int8"},
        {"projections": "fused"},
        *(
            pytest.param(choices, marks=pytest.mark.full)  # they compile
            for choices in (
                {"attention": "flex_attention"},
                {"compile": "default", "shapes": "dynamic"},
                {"compile": "default", "quantization": "torchao-int8"},
            )
        ),
    ],
    ids=str,
)
def test_what_the_rules_allow_runs_and_is_proved(choices: dict[str, str]) -> None:
    torch._dynamo.reset()
    wide = bert(hidden_size=128, intermediate_size=256, num_attention_heads=2)  # blocks of 64, of 128
    encoder = Encoder(wide, **choices)
    assert encoder.checked.blocked == ()
    effective = {finding.axis: finding.effective for finding in encoder.passes(prove=True).findings}
    assert {axis: effective[axis] for axis in choices} == {axis: encoder.checked.planned[axis] for axis in choices}
    assert effective == dict(encoder.checked.planned) | {"tokens": "states"}
    torch._dynamo.reset()


@pytest.mark.parametrize("off", [0, 3])
def test_the_states_of_the_last_pass_are_held_against_one_more(encoder: Encoder, off: int) -> None:
    """Of two texts, some positions of which the measured passes give otherwise."""
    model, ids = encoder.model.model, torch.randint(3, 300, (2, 9))
    mask = torch.ones_like(ids)
    with torch.inference_mode():
        states = model(ids, mask)[0].clone()
        states[:, :off] = 0
    row = find_states(model, encoder.checked.plan, ids, mask, states)
    assert (row.effective, row.reached, row.expected) == ("states", 2 * (9 - off), 18)
    (row,) = [finding for finding in encoder.passes(prove=True).findings if finding.axis == "tokens"]
    assert row.reached == row.expected == TOKENS


def test_a_decoders_forward_pass_is_timed_without_a_cache_and_its_logits_are_proved() -> None:
    name = llama()
    decoder = Encoder(f"forward:{name}")
    assert decoder.checked.memory.kv == 0 and judged(name).memory.kv != 0
    model = decoder.model.model
    shapes: list[Any] = []
    model.register_forward_hook(
        lambda *seen: shapes.append((seen[3].logits.shape, seen[3].past_key_values)), with_kwargs=True
    )
    finished = decoder.passes(prove=True)
    assert len(column(decoder.events, "latency_s")) == 12 and column(decoder.events, "ids") == [0] * 12
    assert set(shapes[:12]) == {(torch.Size([1, TOKENS, decoder.checked.facts.vocab]), None)}
    (tokens,) = [finding for finding in finished.findings if finding.axis == "tokens"]
    assert (tokens.effective, tokens.reached, tokens.expected) == ("states", TOKENS, TOKENS)
    assert {row.effective for row in finished.findings if row.axis in ("cache", "loop")} == {"dynamic", "generate"}
    with pytest.raises(
        InputError, match="is timed by its forward pass alone: it generates no tokens and has no KV cache"
    ):
        judged(f"forward:{name}", cache="static").require_runnable()
