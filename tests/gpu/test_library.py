"""Arms that are captured or compiled, in this process and served: the tokens of a run, and the memory given back."""

import concurrent.futures
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import tokendyno as td
from tests.support.served_arm import served_arm
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.bench import Bench

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

PROMPT = "Once upon a time, there was a little fox named Pip."
CAPTURED = "cache=static,loop=own,cuda_graphs=manual"
MIB = 1 << 20


@pytest.fixture(scope="module")
def captured() -> Iterator[td.Model]:
    with td.load("pocket", f"dtype=float32,{CAPTURED}", progress=False) as model:
        yield model


@pytest.mark.parametrize(
    ("name", "arm"),
    [
        ("pocket", f"{CAPTURED},projections=fused,kernels=local"),
        ("pocket", "speculation=prompt-lookup"),
        ("random:Qwen3-0.6B", "lowest-latency"),
        ("random:Qwen3-0.6B", f"{CAPTURED},quantization=bnb-nf4"),
        ("random:Qwen3-0.6B", "quantization=bnb-nf4-double,cache=offloaded,prefill=chunks-512,allocator=expandable"),
    ],
)
def test_the_tokens_are_those_of_a_run_and_the_memory_is_given_back(name: str, arm: str, bench: Bench) -> None:
    work = Workload(PROMPT, max_new_tokens=48, ignore_eos=True)
    run = bench.wait(bench.submit(Request(name, [ArmRequest("A", dict(parse_arm(name, arm).choices))], work)), 400)
    assert run.status == "done", run.message
    gc.collect()
    before = torch.cuda.memory_allocated()
    with td.load(name, arm, progress=False) as model:
        here = [model.generate(PROMPT, max_new_tokens=48, ignore_eos=True).ids for _ in range(2)]
        assert torch.cuda.memory_allocated() - before >= model.memory.weight_bytes
    assert here[0] == here[1] == run.arms["A"].ids
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()  # one a stream, which graphs of other models may use: they are not freed
    assert torch.cuda.memory_allocated() - before < MIB


def test_a_captured_step_serves_prompts_of_any_length(captured: td.Model) -> None:
    prompts = ["The end", PROMPT, PROMPT * 9, "The end", PROMPT]
    with td.load("pocket", "dtype=float32", progress=False) as plain:
        expected = [plain.generate(one, max_new_tokens=20).ids for one in prompts]
    assert [captured.generate(one, max_new_tokens=20).ids for one in prompts] == expected


@pytest.mark.parametrize("arm", [CAPTURED, "cache=static,compile=reduce-overhead"])
def test_log_probabilities_within_a_graph_are_those_of_the_model(arm: str) -> None:
    with td.load("pocket", f"dtype=float32,{arm}", progress=False) as model:
        made = model.generate(PROMPT, max_new_tokens=40, logprobs=3)
        assert model.generate(PROMPT, max_new_tokens=40).ids == made.ids
        prompt = model.tokenizer(PROMPT)["input_ids"]
    with td.load("pocket", "dtype=float32", progress=False) as plain, torch.inference_mode():
        ids = torch.tensor([prompt + made.ids], device="cuda")
        rows = plain._inner.loaded.model(ids).logits[0, len(prompt) - 1 : -1]
    for token, row in zip(made.tokens, rows.log_softmax(-1), strict=True):
        assert token.logprob == pytest.approx(float(row[token.id]), abs=2e-3)
        assert [one.logprob for one in token.top] == pytest.approx(row.topk(3).values.tolist(), abs=2e-3)


def test_a_captured_arm_draws_by_its_seed_and_is_proved(captured: td.Model) -> None:
    draw = [captured.generate(PROMPT, max_new_tokens=20, temperature=1.5, seed=seed).ids for seed in (1, 1, 2)]
    assert draw[0] == draw[1] != draw[2]
    rows = {row.axis: row for row in captured.prove(PROMPT, max_new_tokens=16, progress=False)}
    assert {rows[axis].status for axis in ("loop", "cache", "cuda_graphs")} == {"verified"}, rows


def test_a_captured_arm_is_served_as_the_library_generates(tmp_path: Path, captured: td.Model) -> None:
    expected = captured.generate(PROMPT, max_new_tokens=40)
    asked: Any = {"model": "pocket", "prompt": PROMPT, "max_tokens": 40, "temperature": 0}
    with served_arm(tmp_path, "pocket", "--arm", f"dtype=float32,{CAPTURED}", "--max-length", "256") as served:
        client = served.openai()
        whole = client.completions.create(**asked, logprobs=2)
        parts = [event.choices[0].text for event in client.completions.create(**asked, stream=True)]
    assert whole.choices[0].text == "".join(parts) == expected.text
    assert whole.choices[0].logprobs is not None and len(whole.choices[0].logprobs.token_logprobs or []) == 40


@pytest.mark.parametrize("more", ["batch_graphs=on", "batch_graphs=on,async_batching=on"])
def test_several_texts_at_once_by_replayed_steps(more: str, tmp_path: Path) -> None:
    prompts = [f"{PROMPT} {number}" for number in range(6)]
    base = "dtype=float32,attention=eager,experts=batched_mm"
    with td.load("pocket", base, progress=False) as plain:
        expected = [plain.generate(one, max_new_tokens=32, ignore_eos=True).text for one in prompts]
    arm = f"{base},batching=continuous,batch_size=4,page_size=16,{more}"
    with served_arm(tmp_path, "pocket", "--arm", arm, "--max-length", "320") as served:
        client = served.openai()

        def text(prompt: str) -> str:
            asked: Any = {"model": "pocket", "max_tokens": 32, "temperature": 0, "extra_body": {"ignore_eos": True}}
            return str(client.completions.create(prompt=prompt, **asked).choices[0].text)

        with concurrent.futures.ThreadPoolExecutor(6) as threads:
            assert list(threads.map(text, prompts)) == expected
