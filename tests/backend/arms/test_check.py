"""The rules: what falls back, what is blocked and how that is settled, what is only remarked."""

import itertools
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.support.machines import CPU, GIB, H200, MACHINES, NAMES, facts
from tests.support.quantization import without
from tokendyno.backend.arms.check import Checked, check, needed_bytes, prompt_tokens
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.hardware import Machine
from tokendyno.backend.optimizations import Optimization, all_axes

SHORT = Workload(prompt="Once upon a time", max_new_tokens=32)
CAPTURED = {"cache": "static", "loop": "own", "cuda_graphs": "manual"}


def judge(model: str = "pocket", machine: Any = CPU, workload: Workload = SHORT, /, **choices: str) -> Checked:
    return check(make_config(model, choices), facts(model), machine, workload)


def of(checked: Checked, axis: str) -> list[Verdict]:
    return [verdict for verdict in checked.verdicts if verdict.axis == axis]


@pytest.mark.parametrize("model", ["pocket", "random:gpt-oss-20b"])
def test_sdpa_falls_back_to_eager_where_there_are_sinks_and_the_request_stays(model: str) -> None:
    checked = judge(model, attention="sdpa")
    (verdict,) = of(checked, "attention")
    assert (verdict.level, verdict.becomes, verdict.fix) == ("fallback", "eager", {"attention": "eager"})
    assert "sinks" in verdict.reason
    assert (checked.requested["attention"], checked.planned["attention"]) == ("sdpa", "eager")
    assert checked.plan.load.attention is None
    checked.require_runnable()


@pytest.mark.parametrize("cache", ["dynamic", "unwindowed"])
def test_the_custom_loop_is_blocked_without_a_static_cache_and_its_fix_settles_it(cache: str) -> None:
    checked = judge(loop="own", cache=cache)
    (blocked,) = checked.blocked
    assert (blocked.axis, blocked.fix) == ("loop", {"cache": "static"})
    with pytest.raises(InputError, match=r"Set cache=static\.$"):
        checked.require_runnable()
    assert judge(**{"loop": "own", "cache": cache, **blocked.fix}).blocked == ()


@pytest.mark.parametrize(
    ("model", "has_chat_template", "blocked"),
    [
        ("pocket", False, True),
        ("pocket", True, False),
        ("random:gpt2", False, True),
        ("random:bert-base-uncased", False, False),
    ],
)
def test_chat_without_a_template_is_refused_beforehand(model: str, has_chat_template: bool, blocked: bool) -> None:
    given = replace(facts(model), has_chat_template=has_chat_template)
    assert facts(model).has_chat_template is False
    work = Workload(prompt="Once", chat=True)
    verdicts = check(make_config(model, {}), given, CPU, work).blocked
    assert [("chat template" in verdict.reason) for verdict in verdicts] == [True] * blocked

    assert check(make_config(model, {}), given, CPU, Workload(prompt="Once")).blocked == ()


@pytest.mark.parametrize(
    ("known", "blocked"), [(None, False), ((), True), (("enable_thinking",), True), (("reasoning_effort",), False)]
)
def test_an_effort_that_the_template_does_not_know_is_refused_beforehand(
    known: tuple[str, ...] | None, blocked: bool
) -> None:
    given = replace(facts("pocket"), has_chat_template=True, template_variables=known)
    work = Workload(prompt="Once", chat=True, reasoning_effort="high")
    verdicts = check(make_config("pocket", {}), given, CPU, work).blocked
    assert ["reasoning effort" in verdict.reason for verdict in verdicts] == [True] * blocked


def test_a_model_that_cannot_fit_is_refused_with_both_figures() -> None:
    checked = judge("random:gpt-oss-120b")
    (verdict,) = checked.blocked
    needed, free = checked.memory.total, CPU.free_device_bytes
    assert f"needs about {needed / GIB:.1f} GiB of memory ({needed:,} bytes" in verdict.reason
    assert f", workspace {checked.memory.workspace:,}, the rest runtime)" in verdict.reason, "which may be most of it"
    assert f"only {free / GIB:.1f} GiB ({free:,} bytes) are free" in verdict.reason
    assert "smaller model" in verdict.reason
    assert checked.memory.weights > 200 * GIB


@pytest.mark.parametrize(("spare_bytes", "runs"), [(0, True), (-1, False)])
def test_the_last_byte_counts(spare_bytes: int, runs: bool) -> None:
    need = judge("random:gpt2").memory.total
    machine = replace(CPU, free_bytes=need + spare_bytes)
    assert (judge("random:gpt2", machine).blocked == ()) is runs
    freed = check(make_config("random:gpt2", {}), facts("random:gpt2"), machine, SHORT, freeable_bytes=1)
    assert freed.blocked == ()


REMEDY = [
    # (model, free GiB, choices, work, the least change that fits)
    ("random:Llama-3-8B", 24, {"dtype": "float32"}, {}, {"dtype": "bfloat16"}),
    ("random:Llama-3-8B", 22, {"attention": "eager"}, {"prompt_tokens": 6000}, {"attention": "sdpa"}),
    ("random:Llama-3-8B", 12, {}, {}, {"quantization": "torchao-int8"}),
    ("random:Llama-3-8B", 8, {}, {}, {"quantization": "bnb-nf4"}),
    ("random:Olmo-3-7B", 24, {"cache": "unwindowed"}, {"max_new_tokens": 24000}, {"cache": "dynamic"}),
]


@pytest.mark.parametrize(("model", "gib", "choices", "work", "fix"), REMEDY)
def test_what_does_not_fit_names_the_least_change_that_does(
    model: str, gib: int, choices: dict[str, str], work: dict[str, Any], fix: dict[str, str]
) -> None:
    machine = replace(H200, gpus=(replace(H200.gpus[0], free_bytes=gib * GIB),))
    workload = Workload(**{"prompt": "Once", "max_new_tokens": 32, **work})
    (verdict,) = of(judge(model, machine, workload, **choices), "model")
    assert (verdict.level, verdict.fix) == ("blocked", fix)
    assert all(f"{axis}={choice}" in verdict.reason for axis, choice in fix.items())
    cured = judge(model, machine, workload, **(choices | fix))
    assert cured.blocked == () and cured.memory.total <= gib * GIB


def test_where_no_change_helps_none_is_offered() -> None:
    tiny = replace(H200, gpus=(replace(H200.gpus[0], free_bytes=2 * GIB),))
    (verdict,) = of(judge("random:Llama-3-8B", tiny), "model")
    assert verdict.fix == {} and "smaller model" in verdict.reason


def test_a_remedy_is_never_one_that_is_refused() -> None:
    bare = replace(
        H200,
        gpus=(replace(H200.gpus[0], free_bytes=12 * GIB),),
        packages=tuple(p for p in H200.packages if p[0] != "bitsandbytes"),
    )
    (verdict,) = of(judge("random:Llama-3-8B", bare), "model")
    assert verdict.fix == {"quantization": "torchao-int8"}


@pytest.mark.parametrize(
    ("model", "machine", "missing", "choices"),
    [
        ("pocket", CPU, "torchao", {"quantization": "torchao-int4"}),
        ("pocket", H200, "torchao", {"quantization": "torchao-int4"}),
        ("random:gpt2", H200, "bitsandbytes", {"quantization": "torchao-int8"}),
        ("pocket", H200, "torchao", {"quantization": "bnb-int8", **CAPTURED}),
        ("random:gpt2", H200, "", {"quantization": "bnb-int8", **CAPTURED}),
    ],
)
def test_no_fix_asks_for_a_choice_that_would_be_refused_too(
    model: str, machine: Machine, missing: str, choices: dict[str, str]
) -> None:
    blocked = judge(model, without(missing, machine), **choices).blocked
    assert blocked and all(verdict.fix == {"quantization": "none"} for verdict in blocked)
    assert judge(model, without(missing, machine), **{**choices, "quantization": "none"}).blocked == ()


@pytest.mark.parametrize(
    ("model", "work", "says"),
    [
        ("random:bert-base-uncased", {"prompt_tokens": 513}, "exceed the 512 positions"),
        (
            "random:gpt2",
            {"prompt_tokens": 1000, "max_new_tokens": 25},
            "are 1,025, but GPT-2, 124M (random weights) has",
        ),
        ("random:gpt2", {"prompt": "x" * 1000, "max_new_tokens": 25}, "25 new tokens are 1,025"),
        ("pocket", {"prompt": "Once upon a time. " * 1000}, "6,000 prompt tokens and 256 new tokens are 6,256"),
        ("forward:pocket", {"prompt": "Once upon a time. " * 1000}, "6,000 prompt tokens exceed the 4,096 positions"),
        ("random:gpt2", {"prompt": "x", "max_new_tokens": 1024}, "1,024 new tokens leave no room for a prompt"),
    ],
)
def test_what_no_choice_can_settle_is_blocked(model: str, work: dict[str, Any], says: str) -> None:
    checked = judge(model, CPU, Workload(**{"prompt": "x", **work}))
    assert [(v.axis, says in v.reason) for v in checked.blocked] == [("model", True)]


@pytest.mark.parametrize(
    ("model", "work"),
    [
        ("random:gpt2", {"prompt": "x", "max_new_tokens": 1023}),
        ("random:gpt2", {"prompt_tokens": 1000, "max_new_tokens": 24}),
        ("random:gpt2", {"prompt": "x" * 1000, "max_new_tokens": 24}),
        ("pocket", {"prompt": "Once upon a time. " * 600, "max_new_tokens": 496}),
    ],
)
def test_the_last_position_may_be_used(model: str, work: dict[str, Any]) -> None:
    assert judge(model, CPU, Workload(**work)).blocked == ()


EVERYWHERE = [(model, machine) for model in (*NAMES, "random:bert-base-uncased") for machine in MACHINES.values()]


def hindered(checked: Checked) -> list[Verdict]:
    """Why an arm does not run as it was asked for; what is about the model itself has no fix."""
    return [v for v in checked.verdicts if v.level in ("blocked", "fallback") and v.axis != "model"]


@pytest.mark.parametrize("axis", all_axes(), ids=lambda axis: axis.name)
def test_a_fix_leaves_no_reason_but_those_stated_before_or_another_axiss(axis: Optimization) -> None:
    """And it changes what it says, nothing else that would run."""
    for (model, machine), choice in itertools.product(EVERYWHERE, axis.choices):
        checked = judge(model, machine, **{axis.name: choice.name})
        for verdict in checked.verdicts:
            assert verdict.axis == "model" or (verdict.reason.endswith(".") and verdict.source), verdict
        for verdict in hindered(checked):
            fixed = judge(model, machine, **{axis.name: choice.name, **verdict.fix})
            assert verdict.fix and verdict.reason not in {left.reason for left in fixed.verdicts}, verdict
            for left in hindered(fixed):
                assert left in checked.verdicts or (left.axis != verdict.axis and left.fix), (verdict, left)
            differs = {name for name in checked.planned if checked.planned[name] != fixed.planned[name]}
            assert differs <= set(verdict.fix), (verdict, differs)


@pytest.mark.parametrize("axis", all_axes(), ids=lambda axis: axis.name)
def test_pressing_one_fix_after_the_other_ends_at_an_arm_that_runs_as_it_then_stands(axis: Optimization) -> None:
    for (model, machine), choice in itertools.product(EVERYWHERE, axis.choices):
        choices, pressed = {axis.name: choice.name}, 0
        while reasons := hindered(judge(model, machine, **choices)):
            choices |= reasons[0].fix
            pressed += 1
            assert pressed <= 3, (model, machine.device, choices, reasons)


@pytest.mark.parametrize(
    ("work", "tokens"),
    [({"prompt_tokens": 7}, 7), ({"prompt": "x"}, 1), ({"prompt": "seven b" * 5}, 10), ({"prompt": "é" * 35}, 20)],
)
def test_the_estimated_length_of_a_prompt(work: dict[str, Any], tokens: int) -> None:
    assert prompt_tokens(Workload(**work)) == tokens


# --- encoders -------------------------------------------------------------------------------------

BERT = "random:bert-base-uncased"


@pytest.mark.parametrize("machine", MACHINES)
def test_an_encoder_runs_and_says_what_is_timed(machine: str) -> None:
    checked = judge(BERT, MACHINES[machine], replace(SHORT, prompt_tokens=512, max_new_tokens=1000))
    assert checked.blocked == (), "passes take no positions"
    (note,) = of(checked, "model")
    assert note.level == "note" and "1,000 forward passes" in note.reason and "Sampling" not in note.reason
    assert checked.memory.kv == 0
    sampled = judge(BERT, CPU, replace(SHORT, temperature=1.0))
    assert "Sampling and chat settings have no effect" in of(sampled, "model")[0].reason


def test_what_is_about_decoding_is_refused_on_an_encoder_and_its_fix_settles_it() -> None:
    concerned = [axis for axis in all_axes() if axis.decoders_only]
    single = {axis.name for axis in concerned if not axis.many_requests}
    assert single == {"cache", "loop", "parallel", "prefill", "speculation"}
    for axis in concerned:
        assert not axis.matters(facts(BERT)) and axis.matters(facts("pocket"))
        for choice in axis.choices:
            refused = [v for v in of(judge(BERT, **{axis.name: choice.name}), axis.name) if "is an encoder" in v.reason]
            assert bool(refused) == (choice.name != axis.default)
            assert all(v.level == "blocked" and v.fix == {axis.name: axis.default} for v in refused)
            assert not any("is an encoder" in v.reason for v in judge(**{axis.name: choice.name}).verdicts)


@pytest.mark.parametrize(
    ("choices", "looks_at"),
    [({}, 1), ({"parallel": "tensor-2"}, 2), ({"parallel": "device-map-4"}, 4), ({"parallel": "tensor-8"}, 8)],
)
def test_the_fullest_gpu_of_those_that_share_an_arm_must_hold_its_part(choices: dict[str, str], looks_at: int) -> None:
    """And no other."""
    for full in range(8):
        gpus = tuple(replace(H200.gpus[0], index=i, free_bytes=GIB if i == full else 139 * GIB) for i in range(8))
        refused = of(judge("random:Llama-3-8B", replace(H200, gpus=gpus), **choices), "model")
        assert bool(refused) is (full < looks_at), full


def test_ranks_on_a_cpu_share_its_memory_and_each_gpu_has_its_own() -> None:
    checked = judge("random:Qwen3-0.6B", parallel="tensor-2")
    plan = checked.plan
    on_gpus = msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, device="cuda"))
    each = checked.memory.total
    assert (needed_bytes(checked.memory, plan), needed_bytes(checked.memory, on_gpus)) == (2 * each, each)


def test_a_refusal_says_each_reason_once_with_its_fix_and_names_the_arm() -> None:
    runs, blocked = judge("random:gpt2"), judge("random:Qwen3-0.6B", cuda_graphs="manual", cache="offloaded")
    assert (runs.refusal(), runs.refusal("B"), runs.refused("")) == ("", "", runs)
    assert {verdict.axis for verdict in blocked.blocked} == {"cuda_graphs", "cache"}
    said = blocked.refusal("B")
    assert said == f"Arm B: {blocked.refusal()}" and said.count(" Set ") == 2
    assert "Set cuda_graphs=auto." in said and "Set cache=dynamic." in said
    twice = replace(blocked, verdicts=(*blocked.verdicts, *blocked.verdicts))
    assert twice.refusal() == blocked.refusal()
    gone = runs.refused("The file is gone.")
    assert (gone.refusal(), gone.refusal("A")) == ("The file is gone.", "Arm A: The file is gone.")
    assert gone.verdicts[1:] == runs.verdicts
