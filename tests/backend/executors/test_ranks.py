"""A group of ranks on this CPU: the same text as one process, cancelled together, and ended together."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.sabotage.small_models import gpt_oss, llama
from tests.support.processes import gone, sitecustomize, wait_for, with_path
from tests.support.quantization import PACKED
from tests.support.worker import request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors.ranks import RankGroup
from tokendyno.backend.optimizations import routed
from tokendyno.backend.worker.ranks.launch import Share

pytestmark = pytest.mark.xdist_group("ranks")

PROMPT = "Once upon a time there was"


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    return make_bench()


def ranks_of(bench: Bench) -> list[int]:
    """Ids of the processes of arm A's group; empty while there are fewer than a launcher and two ranks."""
    worker = bench.pool.slots.get("A")
    pids = list(worker.executor.pids) if worker is not None else []
    return pids if len(pids) == 3 else []


@pytest.mark.slow
@pytest.mark.parametrize("choice", [pytest.param("tensor-2", marks=pytest.mark.full), "expert-2"])
def test_two_ranks_give_the_same_greedy_text_as_one_process_and_prove_it(bench: Bench, choice: str) -> None:
    job = request({"dtype": "float32"}, {"dtype": "float32", "parallel": choice}, prompt=PROMPT, max_new_tokens=24)
    run = bench.wait(bench.submit(job), 240)
    assert run.status == "done", run.message
    one, two = run.arms["A"], run.arms["B"]
    assert two.ids == one.ids and two.text == one.text
    ledger = {row.finding.axis: row for row in run.snapshot().ledgers["B"]}
    assert ledger["parallel"].status == "verified", ledger["parallel"]
    assert not [row for row in ledger.values() if row.status in ("failed", "partial")]
    first, second = two.finished.ranks if two.finished else []
    assert first.weight_bytes == second.weight_bytes == two.predicted.memory["weights"]
    assert first.kv_bytes == second.kv_bytes == two.predicted_kv_bytes()
    assert one.finished is not None and not one.finished.ranks


@pytest.mark.full
def test_a_cancel_reaches_every_rank_at_the_same_token_and_the_group_runs_again(bench: Bench) -> None:
    choices = {"dtype": "float32", "parallel": "tensor-2"}
    run_id = bench.submit(request(choices, max_new_tokens=3000))
    wait_for(lambda: len(bench.runs._runs[run_id].arms["A"].ids) > 3, 120, "tokens")
    pids = ranks_of(bench)
    bench.cancel(run_id)
    run = bench.wait(run_id, 10)
    assert run.status == "cancelled" and "measured so far is kept" in run.message, run.message
    again = bench.wait(bench.submit(request(choices, max_new_tokens=8)), 120)
    assert again.status == "done" and len(again.arms["A"].ids) == 8, again.message
    assert ranks_of(bench) == pids
    sampled = bench.wait(bench.submit(request(choices, max_new_tokens=8, temperature=1.0, seed=5)), 120)
    assert sampled.status == "done", "ranks with different random numbers would hang or give rubbish"


@pytest.mark.full
def test_a_rank_that_dies_ends_the_group_and_is_named(bench: Bench) -> None:
    run_id = bench.submit(request({"dtype": "float32", "parallel": "tensor-2"}, max_new_tokens=3000))
    wait_for(lambda: len(bench.runs._runs[run_id].arms["A"].ids) > 3, 120, "tokens")
    pids = ranks_of(bench)
    second = next(pid for pid in pids[1:] if psutil.Process(pid).environ()["RANK"] == "1")
    os.kill(second, signal.SIGKILL)
    run = bench.wait(run_id, 10)
    assert run.status == "failed" and "Rank 1 was killed by SIGKILL" in run.message
    wait_for(lambda: all(map(gone, pids)), 10, "the group to be gone")


@pytest.mark.full
def test_fused_projections_on_the_parts_give_the_same_text(bench: Bench) -> None:
    """The layers then hold plain tensors: they are counted against the model's own shapes."""
    split = {"parallel": "tensor-2", "projections": "fused"}
    run = bench.wait(bench.submit(request({}, split, model=llama(), prompt_tokens=12)), 240)
    assert run.status == "done" and run.arms["A"].ids == run.arms["B"].ids, run.message
    ledger = {row.finding.axis: row for row in run.snapshot().ledgers["B"]}
    assert ledger["parallel"].status == ledger["projections"].status == "verified", ledger


@pytest.mark.full
@pytest.mark.parametrize("loop", ["generate", "own"])
def test_a_compiled_step_across_ranks_gives_the_same_text_in_one_graph(bench: Bench, loop: str) -> None:
    plain = {"cache": "static", "loop": loop}
    compiled = plain | {"parallel": "tensor-2", "compile": "default"}
    run = bench.wait(bench.submit(request(plain, compiled, model=llama(), prompt_tokens=12)), 600)
    assert run.status == "done" and run.arms["A"].ids == run.arms["B"].ids, run.message
    ledger = {row.finding.axis: row for row in run.snapshot().ledgers["B"]}
    assert ledger["parallel"].status == ledger["compile"].status == "verified", ledger
    seen = run.arms["B"].finished.compiled if run.arms["B"].finished else None
    assert seen is not None and len(seen.graphs) == 1 and not seen.breaks and not seen.skips


IN_TORCH = """
import sys
if any(one.startswith("tokendyno.backend.worker") for one in sys.orig_argv):
    import kernels, torch, types
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    def compute(module, x, chosen, shares):
        def dense(name):
            blocks, scales = (getattr(module, f"{name}_{part}") for part in ("blocks", "scales"))
            return convert_moe_packed_tensors(blocks, scales, dtype=x.dtype)

        up, down = dense("gate_up_proj"), dense("down_proj")
        out = torch.zeros_like(x)
        for token, experts in enumerate(chosen.tolist()):
            for slot, expert in enumerate(experts):
                if expert < len(up):
                    both = x[token] @ up[expert] + module.gate_up_proj_bias[expert]
                    gate, linear = both[::2].clamp(max=module.limit), both[1::2].clamp(-module.limit, module.limit)
                    one = gate * torch.sigmoid(gate * module.alpha) * (linear + 1) @ down[expert]
                    out[token] += (one + module.down_proj_bias[expert]) * shares[token, slot]
        return out

    kernels.get_local_kernel = lambda path: types.SimpleNamespace(mixtures=types.SimpleNamespace(compute=compute))
"""
"""What the kernels compute, where there is no GPU: the rest of a packed model is as it is on one."""


@pytest.mark.full
@pytest.mark.parametrize(
    ("model", "split"),
    [
        (PACKED, {"parallel": "expert-2"}),
        ("random", {"parallel": "tensor-2", "projections": "fused"}),
    ],
)
def test_ranks_keep_their_blocks_of_mxfp4_as_they_lie_and_give_the_text_of_one_process(
    model: str, split: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_bench: Callable[..., Bench]
) -> None:
    monkeypatch.setattr(routed, "OBSTACLES", ())
    sitecustomize(tmp_path, IN_TORCH)
    monkeypatch.setenv("PYTHONPATH", with_path(tmp_path))
    name = gpt_oss(intermediate_size=128) if model == "random" else model
    arms = ({"quantization": "mxfp4-dequantized"}, {"quantization": "mxfp4"} | split)
    job = request(*({"dtype": "float32"} | arm for arm in arms), model=name, max_new_tokens=16)
    bench = make_bench()
    run = bench.wait(bench.submit(job), 240)
    assert run.status == "done", run.message
    one, two = run.arms["A"], run.arms["B"]
    assert two.ids == one.ids
    ledger = {row.finding.axis: row for row in run.snapshot().ledgers["B"]}
    assert {ledger[axis].status for axis in ("quantization", *split)} == {"verified"}, ledger
    assert ledger["quantization"].finding.effective == "mxfp4"
    first, second = two.finished.ranks if two.finished else []
    assert first.weight_bytes == second.weight_bytes == two.predicted.memory["weights"]


FAIL = """
import os, sys
if "tokendyno.backend.worker.ranks" in sys.orig_argv and os.environ.get("RANK") == "1":
    import tokendyno.backend.worker.load.parallel as parallel
    def finish(model, plan):
        raise ValueError("no room on this device")
    parallel.finish = finish
"""


@pytest.mark.full
def test_a_rank_that_cannot_load_fails_the_run_with_its_own_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    sitecustomize(tmp_path, FAIL)
    monkeypatch.setenv("PYTHONPATH", with_path(tmp_path))
    run = bench.wait(bench.submit(request({"dtype": "float32", "parallel": "tensor-2"})), 120)
    assert run.status == "failed" and "Rank 1 failed: ValueError: no room on this device" in run.message


NEVER_COMES = """
import os, sys
if "tokendyno.backend.worker.ranks" in sys.orig_argv:
    if os.environ.get("RANK") == "1":
        import time
        time.sleep(600)
    import tokendyno.backend.worker.ranks.member as meeting
    meeting.COME_WAIT_S = 2
"""


@pytest.mark.full
def test_a_rank_that_never_comes_is_named_with_what_to_do_and_all_are_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    sitecustomize(tmp_path, NEVER_COMES)
    monkeypatch.setenv("PYTHONPATH", with_path(tmp_path))
    run_id = bench.submit(request({"dtype": "float32", "parallel": "tensor-2"}))
    wait_for(lambda: ranks_of(bench), 60, "the ranks")
    pids = ranks_of(bench)
    run = bench.wait(run_id, 60)
    assert run.status == "failed" and "startup: Rank 1 did not come within 2 s" in run.message, run.message
    assert "take fewer ranks" in run.message
    wait_for(lambda: all(map(gone, pids)), 2, "the group to be gone")


@pytest.mark.full
def test_stop_during_the_load_ends_every_rank(bench: Bench) -> None:
    run_id = bench.submit(request({"dtype": "float32", "parallel": "tensor-2"}))
    wait_for(lambda: ranks_of(bench), 60, "the ranks")
    pids = ranks_of(bench)
    bench.cancel(run_id)
    assert bench.wait(run_id, 10).status == "cancelled"
    wait_for(lambda: all(map(gone, pids)), 2, "the group to be gone")


@pytest.mark.full
def test_no_rank_outlives_a_launcher_that_is_killed() -> None:
    import queue

    group = RankGroup(queue.SimpleQueue(), Share(2))
    wait_for(lambda: len(group.pids) == 3, 60, "the ranks")
    pids = group.pids
    os.kill(group.pid, signal.SIGKILL)
    wait_for(lambda: all(map(gone, pids)), 2, "the group to be gone")
    group.end()
