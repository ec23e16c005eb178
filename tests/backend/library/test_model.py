"""A model in this process gives the tokens of a run, reads any prompt, and refuses what it cannot be."""

import itertools
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from safetensors.torch import load_file, save_file

import tokendyno as td
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.paths import PRESETS, ROOT

torch = pytest.importorskip("torch")

PROMPT = "Once upon a time, there was a little fox named Pip."
POCKET = PRESETS / "models" / "pocket"
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}Then{% endif %}"
)
ARMS = [
    "",
    "lowest-latency",
    *(
        pytest.param(arm, marks=pytest.mark.full)
        for arm in (
            "cache=static,loop=own,prefill=chunks-512",
            "quantization=torchao-int8",
            "speculation=prompt-lookup,attention=eager",
            "cache=static,shapes=buckets",
        )
    ),
]


def load(arm: Any = "", model: str = "pocket", **options: Any) -> td.Model:
    return td.load(model, arm, progress=False, **options)


@pytest.fixture(scope="module")
def own_loop() -> Iterator[td.Model]:
    with load("dtype=float32,cache=static,loop=own", max_length=256) as model:
        yield model


@pytest.fixture(scope="module")
def chatty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[td.Model]:
    folder = tmp_path_factory.mktemp("chat") / "pocket"
    shutil.copytree(POCKET, folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    with load("dtype=float32", str(folder)) as model:
        yield model


def same_tokens(name: str, arm: str, bench: Bench) -> None:
    with load(arm, name) as model:
        choices = dict(model._arm.choices)
        here = model.generate(PROMPT, max_new_tokens=24)
        again = model.generate(PROMPT, max_new_tokens=24)
    work = Workload(PROMPT, max_new_tokens=24)
    run = bench.wait(bench.submit(Request(name, [ArmRequest("A", choices)], work)), 400)
    assert run.status == "done", run.message
    assert here.ids == again.ids == run.arms["A"].ids
    assert str(here) == here.text == run.arms["A"].text and here.stop == "length"


@pytest.mark.parametrize("arm", ARMS)
def test_the_tokens_are_those_of_a_run(arm: str, warm_bench: Bench) -> None:
    same_tokens("pocket", arm, warm_bench)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore:Dynamo detected")  # torch says so of transformers' code
@pytest.mark.parametrize("arm", ["cache=static,compile=default", "cache=static,loop=own,compile=default"])
def test_so_are_those_of_a_compiled_arm(arm: str, models: list[ModelFacts], warm_bench: Bench) -> None:
    same_tokens(models[-1].model, arm, warm_bench)


def test_a_stream_tells_the_text_piece_by_piece_and_can_be_closed_half_way(own_loop: td.Model) -> None:
    whole = own_loop.generate(PROMPT, max_new_tokens=30)
    with own_loop.stream(PROMPT, max_new_tokens=30) as stream:
        tokens = list(stream)
    assert [token.id for token in tokens] == whole.ids and "".join(token.text for token in tokens) == whole.text
    assert [token.stop for token in tokens] == [""] * 29 + ["length"] and len(stream.prompt_ids) == whole.prompt_tokens
    long = own_loop.stream(PROMPT, max_new_tokens=4000 if own_loop._inner.facts.max_positions > 4100 else 200)
    first = [token.id for token in itertools.islice(long, 3)]
    long.close()
    assert first == whole.ids[:3] and list(long) == []
    assert own_loop.generate(PROMPT, max_new_tokens=30).ids == whole.ids


@pytest.mark.parametrize("arm", ["", "cache=static,loop=own", "speculation=prompt-lookup"])
def test_log_probabilities_are_those_of_the_model(arm: str) -> None:
    with load(f"dtype=float32,{arm}".rstrip(",")) as model:
        made = model.generate(PROMPT, max_new_tokens=20, logprobs=3)
        prompt = model.tokenizer(PROMPT)["input_ids"]
        with torch.inference_mode():
            rows = model._inner.loaded.model(torch.tensor([prompt + made.ids])).logits[0, len(prompt) - 1 : -1]
        plain = model.generate(PROMPT, max_new_tokens=20)
    assert plain.ids == made.ids and plain.tokens == []
    for token, row in zip(made.tokens, rows.log_softmax(-1), strict=True):
        expected = row.topk(3)
        assert token.logprob == pytest.approx(float(row[token.id]), abs=1e-3)
        assert [likely.logprob for likely in token.top] == pytest.approx(expected.values.tolist(), abs=1e-3)
        assert token.top[0].id == token.id and token.top[0].text == model.tokenizer.decode([token.id])


def test_a_text_ends_at_the_ids_that_end_it(own_loop: td.Model) -> None:
    ids = own_loop.generate(PROMPT, max_new_tokens=12).ids
    end = next(i for i, token in enumerate(ids) if token not in ids[:i] and i > 3)
    made = own_loop.generate(PROMPT, max_new_tokens=12, stop_ids=[ids[end]])
    assert made.ids == ids[: end + 1] and made.stop == "eos"


def test_a_seed_draws_the_same_text_and_another_seed_another(own_loop: td.Model) -> None:
    draw = [own_loop.generate(PROMPT, max_new_tokens=20, temperature=1.5, top_p=0.95, seed=s).ids for s in (1, 1, 2)]
    assert draw[0] == draw[1] != draw[2]


def test_ids_tensors_and_conversations_are_prompts_too(own_loop: td.Model, chatty: td.Model) -> None:
    ids = own_loop.tokenizer(PROMPT)["input_ids"]
    expected = own_loop.generate(PROMPT, max_new_tokens=8).ids
    assert own_loop.generate(ids, max_new_tokens=8).ids == expected
    assert own_loop.generate(torch.tensor([ids]), max_new_tokens=8).ids == expected
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Yes?"},
        {"role": "user", "content": "Go"},
    ]
    rendered = "<user>Hi\n<assistant>Yes?\n<user>Go\nThen"
    chat = chatty.generate(messages, max_new_tokens=8)
    assert chat.ids == chatty.generate(rendered, max_new_tokens=8).ids
    parts = [{**message, "content": [{"type": "text", "text": message["content"]}]} for message in messages]
    assert chatty.generate(parts, max_new_tokens=8).ids == chat.ids
    with pytest.raises(InputError, match="both are texts"):
        chatty.generate([{"role": "user"}])
    for prompt, words in (
        (messages, "no chat template"),
        ([], "no tokens"),
        ("", "no tokens"),
        ([10**6], "ids must be from 0"),
        (["a", "b"], "a list of token ids"),
        (b"Hi", "a list of token ids"),
        (None, "a list of token ids"),
        ("\ud800", "not valid UTF-8"),
        (ids * 10_000, "positions"),
    ):
        with pytest.raises(InputError, match=words):
            own_loop.generate(prompt, max_new_tokens=8)
    assert own_loop._places == 256, "what was refused has made no longer cache"
    with pytest.raises(InputError, match="logprobs is 21"):
        own_loop.stream(PROMPT, logprobs=21)
    with pytest.raises(InputError, match="temperature is -1"):
        own_loop.generate(PROMPT, temperature=-1)
    with pytest.raises(InputError, match="temperature is hot; it must be a number"):
        own_loop.generate(PROMPT, temperature=cast("Any", "hot"))


def test_a_static_cache_serves_shorter_prompts_and_grows_for_longer_ones() -> None:
    longer = PROMPT * 6
    with load("dtype=float32,cache=static,loop=own") as model:
        first = [model.generate(prompt, max_new_tokens=12).ids for prompt in (PROMPT, "The end", longer, PROMPT)]
        captured = model._inner._worker.take_course(model._inner.checked.plan).generation.loop._loop._step  # type: ignore[union-attr]
        model.generate("The end", max_new_tokens=12)
        again = model._inner._worker.take_course(model._inner.checked.plan).generation.loop._loop._step  # type: ignore[union-attr]
    with load("dtype=float32") as plain:
        assert first == [plain.generate(p, max_new_tokens=12).ids for p in (PROMPT, "The end", longer, PROMPT)]
    assert captured is again


def test_threads_take_turns(own_loop: td.Model) -> None:
    prompts = [f"{PROMPT} {n}" for n in range(4)]
    expected = [own_loop.generate(prompt, max_new_tokens=10).ids for prompt in prompts]
    texts: dict[int, list[int]] = {}
    threads = [
        threading.Thread(target=lambda n=n: texts.update({n: own_loop.generate(prompts[n], max_new_tokens=10).ids}))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [texts[n] for n in range(4)] == expected


def test_threads_share_the_steps_of_continuous_batching() -> None:
    """More texts than the arm takes at once; one is too long, one reads past the vocabulary, one leaves half way."""
    prompts = [f"{PROMPT} {n}" for n in range(6)]
    with load("dtype=float32") as alone:
        expected = [alone.generate(prompt, max_new_tokens=12 + n).ids for n, prompt in enumerate(prompts)]
        stop = expected[5][8]
    with load("dtype=float32,batching=continuous,batch_size=4,page_size=16,batch_tokens=128", max_length=512) as model:
        assert model.at_once == 4
        with model.stream(PROMPT * 16, max_new_tokens=200, ignore_eos=True) as leaving:
            next(leaving)
            streams = [model.stream(prompt, max_new_tokens=12 + n) for n, prompt in enumerate(prompts[:5])]
            streams.append(model.stream(prompts[5], max_new_tokens=64, stop_ids=[stop]))
            unknown = model.stream([10**7], max_new_tokens=4)
            drawn = [model.stream(PROMPT, max_new_tokens=12, temperature=1.5, seed=None) for _ in range(2)]
            near = model.stream(PROMPT, max_new_tokens=12, temperature=1.5, top_k=1)
            next(leaving)
        tokens = [list(stream) for stream in streams]
        texts = [tuple(token.id for token in stream) for stream in drawn]
        assert [[token.id for token in text] for text in tokens[:5]] == expected[:5]
        assert [token.id for token in tokens[5]] == expected[5][: expected[5].index(stop) + 1]
        assert tokens[5][-1].stop == "eos" and len(set(texts)) == 2
        assert [token.id for token in near] == model.generate(PROMPT, max_new_tokens=12).ids
        with pytest.raises(InputError, match="ids must be"):
            next(unknown)
        seeded = {"temperature": 1.0, "seed": 3}
        refused: Any = (({"logprobs": 1}, "logprobs"), (seeded, "seed is 3"), ({}, "pages for 512"))
        for options, words in refused:
            with pytest.raises(InputError, match=words):
                model.generate(PROMPT, max_new_tokens=1 if options else 512, **options)
        with pytest.raises(InputError, match="tokendyno batch"):
            model.measure()
        texts_of: Any = model._inner._texts
        assert not texts_of._manager.batch_processor.has_pending_requests()  # who left holds no pages


def test_its_ledger_is_proved_when_asked(own_loop: td.Model, capfd: pytest.CaptureFixture[str]) -> None:
    assert {row.status for row in own_loop.ledger} == {"unchecked"}
    rows = {row.axis: row for row in own_loop.prove(PROMPT, max_new_tokens=16, progress=False)}
    assert rows["loop"].status == rows["cache"].status == rows["tokens"].status == "verified"
    assert own_loop.ledger == list(rows.values()) and "profiler_start" not in capfd.readouterr().err
    memory = own_loop.memory
    assert memory.weight_bytes == memory.predicted_bytes["weights"]
    assert own_loop.bound.note


REFUSED = [
    ("pocket", "parallel=tensor-2", r"runs 2 processes.* with td\.run, or leave parallel out\.$"),
    ("pocket", "batching=static", "takes many requests"),
    ("pocket", "loop=own", "Set cache=static"),
    ("pocket", "cach=static", "Did you mean"),
    ("pocket", "attention=flash_attention_2", "GPU"),
    ("random:bert-base-uncased", "", "is an encoder"),
    ("no-such-model", "", "no-such-model"),
]


@pytest.mark.parametrize(("model", "arm", "words"), REFUSED)
def test_what_cannot_be_here_is_refused_with_a_reason(model: str, arm: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load(arm, model)


def test_settings_of_the_process_under_which_it_would_be_another_arm_are_refused() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(InputError, match=r"torch.set_default_dtype\(torch.float64\).*Undo that"):
            load()
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.slow
def test_one_compiled_arm_at_a_time_and_a_closed_model_says_so() -> None:
    with load("cache=static,compile=default") as model:
        with pytest.raises(InputError, match="one state per process"):
            load("cache=static,compile=default")
        with load() as other:
            assert other.generate(PROMPT, max_new_tokens=2).ids
    with pytest.raises(InputError, match="closed"):
        model.generate(PROMPT)
    load("cache=static,compile=default").close()


def test_arms_may_be_lists_or_mappings(own_loop: td.Model) -> None:
    for arm in (["dtype=float32", "cache=static"], {"dtype": "float32", "cache": "static"}):
        with load(arm) as model:
            assert model.choices["cache"] == "static" and "cache=static" in repr(model)


def test_noise_is_no_text(tmp_path: Path) -> None:
    folder = tmp_path / "pocket"
    shutil.copytree(POCKET, folder)
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] *= 30_000  # finite, but scores in float16 are not
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    for arm in ("dtype=float16", "dtype=float16,batching=continuous"):
        with load(arm, str(folder)) as model, pytest.raises(td.RunFailed, match="use dtype=bfloat16"):
            model.generate(PROMPT, max_new_tokens=4)


def test_the_name_alone_imports_no_torch(tmp_path: Path) -> None:
    code = "import sys, tokendyno as td; td.load; print(*(m in sys.modules for m in ('torch', 'pandas')))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["False", "False"], ran.stderr
