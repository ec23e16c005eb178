"""The worker's protocol, spoken with a real process and the embedded model."""

import logging
import shutil
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.kv import kv_series
from tests.support.processes import sitecustomize, with_path
from tests.support.worker import Talk, column, only
from tests.support.worker import plan_of as checked_plan
from tokendyno.backend.engine.executor import Died
from tokendyno.backend.messages import (
    Cancel,
    Failed,
    Finished,
    Load,
    Loaded,
    Progress,
    Ready,
    Samples,
    Shutdown,
    Started,
    Tokens,
)
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import axis_names
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.plan import CACHES, LoadPlan, Plan
from tokendyno.backend.predict.weights import weight_bytes
from tokendyno.backend.worker.serve import MOST_CHARACTERS, Reports

WINDOW = 128


def plan_of(model: str = "pocket", **choices: str) -> Plan:
    """In float32: in bfloat16 a CPU prepares kernels anew for each length."""
    return checked_plan(model, **{"dtype": "float32"} | choices)


@pytest.fixture(scope="module")
def talk(warm_worker: Talk) -> Talk:
    return warm_worker


@pytest.fixture(scope="module")
def events(talk: Talk) -> list[Any]:
    """A whole run: 40 tokens behind 100, so that the window of 128 is passed."""
    return talk.generate(plan_of(), prompt_tokens=100, max_new_tokens=40, prove=True)


def test_ready_gives_the_pid_and_the_versions_that_run(talk: Talk) -> None:
    ready = talk.ready
    assert isinstance(ready, Ready) and ready.pid == talk.worker.pid
    assert {"torch", "transformers", "python"} <= set(ready.versions)


def test_a_load_counts_the_bytes_of_its_tensors_and_a_second_one_reuses_them(talk: Talk) -> None:
    facts, plan = resolve("pocket"), plan_of(dtype="auto")
    talk.load(plan_of())
    first, again = talk.load(plan), talk.load(plan)
    assert isinstance(first, Loaded) and isinstance(again, Loaded)
    assert first.weight_bytes == weight_bytes(facts, facts.dtype) and first.parameters == facts.parameters
    assert not first.reused and again.reused


def test_a_reused_model_has_the_bytes_that_it_was_loaded_with(talk: Talk) -> None:
    """A CPU with AVX512-BF16 has smaller scales of 4-bit weights after the first step."""
    plan = plan_of(quantization="bnb-nf4")
    first, _, again = talk.load(plan), talk.generate(plan, max_new_tokens=2), talk.load(plan)
    assert isinstance(first, Loaded) and isinstance(again, Loaded) and again.reused
    assert again.weight_bytes == first.weight_bytes


def test_times_grow_and_latencies_add_up_to_them(events: list[Any]) -> None:
    t_s, latency_s = column(events, "t_s"), column(events, "latency_s")
    assert t_s == sorted(t_s) and min(latency_s) > 0
    assert sum(latency_s) == pytest.approx(t_s[-1])
    finished = events[-1]
    assert finished.ttft_s == t_s[0] == latency_s[0] and t_s[-1] <= finished.wall_s


@pytest.mark.parametrize(("cache", "batch"), [("dynamic", 1), ("unwindowed", 2), ("static", 2)])
def test_kv_bytes_are_those_predicted_before_at_and_past_the_window(talk: Talk, cache: str, batch: int) -> None:
    facts = resolve("pocket")
    prompt, new = WINDOW - 6, 12
    events = talk.generate(plan_of(cache=cache), prompt_tokens=prompt, max_new_tokens=new, batch_size=batch)
    told = kv_series(facts, CACHES[cache], prompt, new, batch, 4, prompt + new)
    assert column(events, "kv_sliding") == [kv.sliding for kv in told]
    assert column(events, "kv_full") == [kv.full for kv in told]


def test_the_streamed_text_is_the_beginning_of_the_final_text(events: list[Any]) -> None:
    streamed = "".join(batch.text for batch in only(events, Tokens))
    assert streamed and events[-1].text.startswith(streamed)


def test_the_text_can_be_replayed_token_by_token(talk: Talk) -> None:
    """Each token has the end of the text that exists with it, over all batches; old records have none."""
    for model, more in (("pocket", {}), ("random:pocket", {"temperature": 3.0})):
        events = talk.generate(plan_of(model), max_new_tokens=60, **more)
        batches = only(events, Tokens)
        text, ends = "".join(batch.text for batch in batches), column(events, "text_ends")
        assert len(ends) == 60 and ends == sorted(ends) and ends[-1] == len(text)
        so_far = 0
        for batch in batches:
            so_far += len(batch.text)
            assert batch.text_ends[-1] == so_far and (batch.sequence, batch.rank) == (0, 0)
    assert len(set(ends)) < len(ends), "a token that completes no character adds none"


def test_characters_of_many_tokens_are_never_streamed_in_halves(talk: Talk) -> None:
    """Random weights speak random bytes: most characters are broken or cut."""
    events = talk.generate(plan_of("random:pocket"), max_new_tokens=120, temperature=3.0, batch_size=2)
    streamed = "".join(batch.text for batch in only(events, Tokens))
    assert isinstance(events[-1], Finished) and events[-1].text.startswith(streamed) and streamed


def test_memory_samples_are_in_order_and_labelled(events: list[Any]) -> None:
    samples = only(events, Samples)
    t_s = [t for s in samples for t in s.t_s]
    held = [m for s in samples for m in s.memory_bytes]
    assert len(t_s) == len(held) >= 2 and t_s == sorted(t_s) and min(held) > 100 << 20
    finished = events[-1]
    assert "resident" in finished.memory_label and finished.peak_memory_bytes >= max(held)


def test_phases_come_in_order_and_each_begins_and_ends(talk: Talk) -> None:
    talk.load(plan_of(dtype="auto"))
    talk.send(Load(plan_of()))
    seen = talk.until(Loaded)
    talk.begin(plan_of(), warmup=True, prove=True, max_new_tokens=11)
    seen += talk.until(Finished)
    marks = [(p.phase, p.state) for p in only(seen, Progress) if p.state != "step"]
    phases = ("load", "warmup", "run", "prove")
    assert marks == [(phase, state) for phase in phases for state in ("begin", "end")]
    assert [type(e) for e in seen].index(Started) < [type(e) for e in seen].index(Tokens)


def test_a_second_run_of_the_same_shape_is_not_warmed_up_again(talk: Talk) -> None:
    for warmed_up in (True, False):
        events = talk.generate(plan_of(), prompt_tokens=33, max_new_tokens=9, warmup=True)
        assert bool([p for p in only(events, Progress) if p.phase == "warmup"]) is warmed_up


def test_a_run_finds_out_every_axis(events: list[Any]) -> None:
    findings = {f.axis: f for f in events[-1].findings}
    assert tuple(findings) == (*axis_names(), "tokens") and len(events[-1].findings) == len(findings)
    effective = {axis: findings[axis].effective for axis in ("dtype", "attention", "cache", "compile")}
    assert effective == {"dtype": "float32", "attention": "eager", "cache": "dynamic", "compile": "off"}
    assert all(f.proof for f in findings.values())


def test_a_prompt_is_cut_or_repeated_to_the_tokens_asked_for(talk: Talk) -> None:
    for prompt, wanted in (("", 50), ("Once upon a time there was a cat.", 3), ("Once", 40)):
        started = only(talk.generate(plan_of(), prompt=prompt, prompt_tokens=wanted), Started)[0]
        assert started.prompt_tokens == wanted
        assert any("synthetic" in note for note in started.notes) == (not prompt)


def test_cancel_in_mid_run_keeps_the_tokens(talk: Talk) -> None:
    talk.load(plan_of())
    talk.begin(plan_of(), max_new_tokens=3000)
    before = talk.until(Tokens)
    talk.send(Cancel())
    after = talk.until(Finished, limit_s=5)
    finished, made = after[-1], len(column(before + after, "ids"))
    assert finished.reason == "cancelled" and 0 < made < 3000 and finished.text and not finished.findings


def test_a_cancel_right_behind_its_generate_counts_and_one_before_it_does_not(talk: Talk) -> None:
    talk.load(plan_of())
    for _ in range(5):
        talk.begin(plan_of(), max_new_tokens=3000)
        talk.send(Cancel())
        assert talk.until(Finished, limit_s=10)[-1].reason == "cancelled"
    talk.send(Cancel())
    talk.begin(plan_of(), max_new_tokens=4)
    assert talk.until(Finished, limit_s=10)[-1].reason == "length"


def test_a_load_that_fails_is_reported_in_its_phase_and_the_worker_goes_on(talk: Talk, tmp_path: Path) -> None:
    nowhere = Plan(LoadPlan(ModelSource("folder", path=str(tmp_path / "nowhere"))))
    failed = talk.load(nowhere)
    assert isinstance(failed, Failed) and failed.phase == "load"
    assert failed.error and failed.advice and "Traceback" in failed.detail and not failed.fatal
    assert isinstance(talk.load(plan_of()), Loaded)


def test_a_generate_without_its_load_fails_and_the_worker_goes_on(talk: Talk) -> None:
    talk.load(plan_of())
    talk.begin(plan_of(dtype="auto"))
    assert isinstance(talk.until(Failed, Finished)[-1], Failed)
    assert isinstance(talk.generate(plan_of())[-1], Finished)


def test_a_prompt_that_does_not_fit_is_bad_input_and_nothing_broke(talk: Talk) -> None:
    failed = talk.generate(plan_of(), prompt="word " * 5000)[-1]
    assert isinstance(failed, Failed) and failed.bad_input and not failed.fatal and "positions" in failed.error
    assert isinstance(talk.generate(plan_of())[-1], Finished)


def test_greedy_text_is_the_same_with_every_cache_past_the_window_and_when_run_again(talk: Talk) -> None:
    made = {}
    for run, cache in enumerate(("dynamic", "unwindowed", "static", "static", "dynamic")):
        events = talk.generate(plan_of(cache=cache), prompt_tokens=110, max_new_tokens=30)
        made[run] = (column(events, "ids"), events[-1].text)
    assert len(made[0][0]) == 30 and all(made[run] == made[0] for run in made)


def test_sampling_follows_the_seed(talk: Talk) -> None:
    texts = [
        column(talk.generate(plan_of(), temperature=1.5, seed=seed, max_new_tokens=16), "ids") for seed in (1, 1, 2)
    ]
    assert texts[0] == texts[1] != texts[2]


@pytest.mark.slow
def test_stray_prints_tear_no_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread writes to standard output all the time, as C libraries and compilers do, without newlines."""
    sitecustomize(
        tmp_path,
        "import os, sys, threading, time\n"
        "def shout():\n"
        "    while 'torch' not in sys.modules: time.sleep(0.01)\n"
        "    while True:\n"
        "        os.write(1, b'{\"type\": noise '); print('more', flush=True); time.sleep(0.001)\n"
        "if sys.argv[-1:] != ['-m']: threading.Thread(target=shout, daemon=True).start()\n",
    )
    monkeypatch.setenv("PYTHONPATH", with_path(tmp_path))
    talk = Talk()
    try:
        events = talk.generate(plan_of(), max_new_tokens=30)
        assert isinstance(events[-1], Finished) and len(column(events, "ids")) == 30
    finally:
        talk.end()


def test_a_worker_that_gets_an_unreadable_command_ends_and_says_so() -> None:
    talk = Talk()
    stdin = talk.worker._process.stdin
    assert stdin is not None
    stdin.write(b'{"type": "load", "surprise": 1}\n')
    stdin.flush()
    died = talk.until(Died, limit_s=5)[-1]
    assert "code 1" in died.cause and msgspec.ValidationError.__name__ in died.cause


def test_a_worker_ends_on_shutdown_and_another_when_its_pipe_is_closed() -> None:
    polite, cut = Talk(wait=False), Talk(wait=False)
    polite.until(Ready), cut.until(Ready)
    polite.send(Shutdown())
    assert polite.worker._process.wait(5) == 0
    assert cut.worker._process.stdin is not None
    cut.worker._process.stdin.close()
    assert cut.worker._process.wait(5) in (0, -signal.SIGKILL)  # itself, or its guard


def test_warnings_are_kept_while_listening_and_only_then() -> None:
    reports, log = Reports(), logging.getLogger("a.library")
    log.warning("before")
    with reports.listening():
        log.info("too small to matter")
        log.warning(
            "one | CONVERSION |\n\nTraceback (most recent call last):\n  File x\nRuntimeError: sizes differ\n----+---"
        )
    log.warning("after")
    assert reports.text() == "one | CONVERSION; RuntimeError: sizes differ"
    with reports.listening():
        pass
    assert reports.text() == ""


def test_loggers_that_keep_their_records_to_themselves_are_heard_too() -> None:
    reports, log = Reports(), logging.getLogger("a.silent.library")
    log.propagate = False
    with reports.listening():
        log.error("why")
    assert reports.text() == "why"
    assert not log.handlers


def test_what_is_said_is_bounded_and_without_secrets() -> None:
    reports = Reports()
    with reports.listening():
        logging.getLogger("x").warning("begin hf_ABCDEFGHIJ0123456789 %s end", "long " * 1_000)
    assert len(reports.text()) < MOST_CHARACTERS + 20
    assert reports.text().startswith("begin [redacted]") and reports.text().endswith("end")


@pytest.fixture
def torn_mixture(tmp_path: Path) -> Path:
    """A mixture whose second expert has another size than the first: stacking them fails while it is loaded."""
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=2,
    )
    MixtralForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    name = next(name for name in weights if "experts.1." in name)
    weights[name] = weights[name][:10].clone()
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(PRESETS / "models" / "pocket" / file, tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_failed_conversion_names_the_tensors_that_did_not_fit(warm_worker: Talk, torn_mixture: Path) -> None:
    failed = warm_worker.load(Plan(LoadPlan(ModelSource("folder", str(torn_mixture)))))
    assert isinstance(failed, Failed)
    assert "issues during automatic conversion" in failed.error
    assert "got [48, 32] at entry 0 and [10, 32] at entry 1" in failed.error
    assert "Traceback" not in failed.error and len(failed.error) < 2_000
