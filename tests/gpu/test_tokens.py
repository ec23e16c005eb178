"""The bench records what `generate` generates: every token id, in order, with its time."""

import pytest

from tokendyno.backend.models import resolve
from tools.bench.gpu.bench_cli import bench

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

PROMPT, NEW = "Once upon a time, there was a little fox named Pip.", 300


def test_ids_are_those_of_a_bare_generate() -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = resolve("pocket").source.path
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).cuda().eval()
    ids = tokenizer(PROMPT, return_tensors="pt")["input_ids"].cuda()
    model.generation_config.eos_token_id = None
    out = model.generate(ids, max_new_tokens=NEW, do_sample=False, eos_token_id=None)
    expected = out[0, ids.shape[1] :].tolist()

    document = bench("tokens", f"run --arm dtype=float32 --prompt '{PROMPT}' --max-new-tokens {NEW} --ignore-eos")
    (arm,) = document["arms"]
    assert arm["token_ids"] == expected
    assert arm["time_s"] == sorted(arm["time_s"]) and len(arm["time_s"]) == NEW
    assert arm["kv_bytes"] == arm["kv_bytes_predicted"]
