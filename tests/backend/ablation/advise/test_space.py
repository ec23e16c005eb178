"""Which arms may answer a wish."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tokendyno.backend.ablation.advise import space
from tokendyno.backend.ablation.advise.predicted import predicted
from tokendyno.backend.ablation.advise.result import predicted_document
from tokendyno.backend.ablation.advise.space import AS_IT_COMES, Builder, by_reason
from tokendyno.backend.ablation.advise.wishes import Limits, Question
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload, workload_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.fit.device import elsewhere
from tokendyno.backend.traffic.presets import drawn, traffic_presets

WORK = Workload(prompt_tokens=128, max_new_tokens=64)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    opened = open_bench(None, None)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def builder(bench: Bench) -> Builder:
    return Builder(bench, Question("pocket", WORK, "latency"))


def test_every_arm_runs_here_and_no_two_are_the_same(builder: Builder) -> None:
    space = builder.space
    assert next(iter(space.arms.values())) is space.base and space.base.title == AS_IT_COMES
    configs = [make_config("pocket", arm.choices) for arm in space.arms.values()]
    checks = [check(config, builder.facts, builder.machine, WORK) for config in configs]
    assert not any(checked.blocked for checked in checks)
    assert len({str(checked.plan) for checked in checks}) == len(space.arms) > 60


def test_what_was_ruled_out_has_a_reason_and_is_counted(builder: Builder) -> None:
    groups = by_reason(builder.space.pruned)
    assert sum(group.count for group in groups) == sum(map(len, builder.space.pruned.values())) > 60
    assert all(group.why.endswith(".") and group.arms for group in groups)
    assert {"Its gain depends on the text: give a prompt.", "The prompt is no longer than one chunk."} <= {
        group.why for group in groups
    }
    without_effect = ("prefill=chunks", "allocator=", "compile=module")  # at 128 tokens, on a CPU, in generate
    assert not [name for name in builder.space.arms if any(one in name for one in without_effect)]


def test_a_recipe_is_what_changes_number_formats(builder: Builder) -> None:
    recipes = {name: arm.recipe for name, arm in builder.space.arms.items()}
    assert recipes["cache=static,loop=own"] == "" and recipes["dtype=float16"] == "dtype=float16"


def test_limits_rule_out_what_is_predicted_to_break_them(bench: Bench) -> None:
    with pytest.raises(
        InputError, match=r"^Nothing keeps to 1\.00 MiB: the least that Pocket, 5M is predicted to need"
    ):
        Builder(bench, Question("pocket", WORK, "memory", Limits(memory_bytes=1 << 20)))
    there = elsewhere(bench.machine(), "H100-SXM")
    tight = Builder(bench, Question("random:Llama-3-8B", WORK, "latency", Limits(10 << 30, 0.002)), there)
    said = [one.why for one in by_reason(tight.space.pruned)]
    assert "Needs more than 10.0 GiB by its prediction." in said
    assert "Its roofline bound is over 2.00 ms a token." in said
    others = [one for one in tight.space.arms.values() if one is not tight.space.base]
    assert others and all(one.memory_bytes <= 1.05 * (10 << 30) for one in others)


def test_a_model_that_one_card_has_no_room_for_is_shared_before_it_is_rounded(bench: Bench) -> None:
    two, one = (elsewhere(bench.machine(), "H100-SXM", gpus) for gpus in (2, 1))
    shared, rounded = (Builder(bench, Question("random:Llama-3-70B", WORK, "latency"), there) for there in (two, one))
    assert (shared.space.base.name, shared.space.formats) == ("parallel=tensor-2", "the model's own number formats")
    best = "cache=static,cuda_graphs=manual,kernels=local,loop=own,parallel=tensor-2,projections=fused"
    assert {*best.split(",")} in [{*name.split(",")} for name in shared.space.arms]
    packed = Builder(
        bench, Question("random:gpt-oss-120b", WORK, "latency"), elsewhere(bench.machine(), "A100-40GB", 2)
    )
    assert packed.space.base.name == "parallel=tensor-2,quantization=mxfp4"
    best += ",experts=triton,quantization=mxfp4"
    assert {*best.split(",")} in [{*name.split(",")} for name in packed.space.arms], "a preset, beside what it needs"
    assert rounded.space.formats == "the number formats with which it fits (Quantization torchao int8)"
    assert "Lowest latency + Quantization torchao int8" in {arm.title for arm in rounded.space.arms.values()}
    with pytest.raises(InputError, match=r"^Even with .* nf4, double, Llama 3 70B .* needs about 38\.\d GiB"):
        Builder(bench, Question("random:Llama-3-70B", WORK, "latency"), elsewhere(bench.machine(), "L4"))


def test_copies_of_one_text_read_the_experts_of_one(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(space, "MOST_ARMS", 1)  # no other than the base
    there = elsewhere(bench.machine(), "H100-SXM")
    one, eight, drawn_apart = (
        Builder(bench, Question("random:gpt-oss-20b", work, "latency"), there).space.base.bound_s or 0.0
        for work in (WORK, replace(WORK, batch_size=8), replace(WORK, batch_size=8, temperature=1.0))
    )
    assert one < eight < 1.1 * one < drawn_apart


def test_many_requests_are_served_in_batches(bench: Bench) -> None:
    traffic = drawn(traffic_presets()[0].draw, 0)
    many = Builder(bench, Question("pocket", workload_of(traffic), "throughput", traffic=traffic)).space
    assert many.base.choices == {"batching": "static"}
    kinds = {arm.choices["batching"] for arm in many.arms.values()}
    assert kinds == {"static", "continuous"} and any("page_size" in arm.choices for arm in many.arms.values())


def test_near_the_best_arm_there_are_more(builder: Builder) -> None:
    best = builder.space.arms["cache=static,kernels=local,loop=own,projections=fused"]
    before = set(builder.space.arms)
    assert builder.widen(best) == len(builder.space.arms) - len(before) > 0
    assert all(
        len({*arm.choices.items()} ^ {*best.choices.items()}) <= 4
        for name, arm in builder.space.arms.items()
        if name not in before
    )


def test_for_a_card_that_is_not_here_bounds_and_recordings_tell(bench: Bench) -> None:
    there = elsewhere(bench.machine(), "H100-SXM")
    builder = Builder(bench, Question("random:Llama-3-8B", WORK, "latency"), there)
    arms = predicted(builder, Limits(any_quality=True), "H100-SXM", bench.runs)
    same_format = next(arm for arm in arms if not arm.format)
    assert same_format.bound_s == pytest.approx(15.0e9 / 3.35e12, rel=0.02)
    assert same_format.choices["cuda_graphs"] == "manual"
    assert (arms[0].bound_s or 1.0) < (same_format.bound_s or 0.0) / 3, "four bits come first"
    kept = predicted(builder, Limits(), "H100-SXM", bench.runs)
    assert 0 < len(kept) < len(arms) and all(arm.kl_nats is None or arm.kl_nats < 0.05 for arm in kept)
    assert not [arm for arm in kept if arm.format == "dtype=float16"], "as large, as fast, and of no better quality"
    with pytest.raises(InputError, match="What starts quickest on H100-SXM cannot be predicted"):
        predicted_document(builder, Question("random:Llama-3-8B", WORK, "quick-start"), "H100-SXM", bench.runs)


def test_an_arm_that_would_run_as_another_is_not_advised(bench: Bench) -> None:
    """The preset guide-as-written asks for bitsandbytes, which generate does not compile."""
    there = elsewhere(bench.machine(), "H100-SXM")
    space = Builder(bench, Question("random:Llama-3-8B", WORK, "latency"), there).space
    packed = [name.split(",") for name in space.arms if "quantization=bnb-int8" in name]
    own = [name for name in packed if "loop=own" in name]
    assert packed and not [name for name in packed if name not in own and any("compile=" in one for one in name)]
    assert any(why.startswith("generate does not compile models quantized with bitsandbytes") for why in space.pruned)
