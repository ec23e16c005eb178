"""Two arms whose greedy texts part: the gap at that token is asked of a real worker, after the measured runs."""

from collections.abc import Callable

import pytest

from tests.support.worker import request
from tokendyno.backend.engine.bench import Bench


@pytest.mark.full
def test_the_gap_at_the_token_where_two_texts_part_is_that_of_a_bare_forward(make_bench: Callable[..., Bench]) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    from tokendyno.backend.paths import PRESETS

    bench = make_bench()
    job = request({"dtype": "bfloat16"}, {"dtype": "float32"}, max_new_tokens=200)
    run = bench.wait(bench.submit(job), 240)
    texts = run.snapshot().texts
    assert run.status == "done" and texts is not None
    at = texts.tokens_equal_until
    assert at is not None and texts.gap is not None, "choose a text that differs"
    folder = PRESETS / "models" / "pocket"
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
    from transformers import AutoTokenizer

    prompt = AutoTokenizer.from_pretrained(folder)(job.workload.prompt)["input_ids"]
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([prompt + run.arms["A"].ids[:at]])).logits[0, -1].float()
    first, second = logits.topk(2).values.tolist()
    assert texts.gap == pytest.approx(first - second, abs=0.13)  # one step of bfloat16 at such logits
    assert {run.arms[name].ids[at] for name in "AB"} <= set(logits.topk(4).indices.tolist())
