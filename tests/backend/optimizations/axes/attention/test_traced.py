"""Calls of attention counted in traces as a GPU leaves them; those of a CPU are really made, in `tests/sabotage`."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from tests.support.counted_models import COUNTED
from tests.support.tiny_models import tiny
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.axes.attention import FA2, HUB_FA3
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation, compiled_calls
from tokendyno.backend.worker.prove.profile import REGION, Trace
from tokendyno.backend.worker.witness import attention, find
from tokendyno.backend.worker.witness.attention import Heads, ProbedCall, _probed, attending_layers, traced_calls

LAYERS, STEPS = 4, 4
SDPA, SOFTMAX = "aten::scaled_dot_product_attention", "aten::softmax"
PROMPT, NEW = ((1, 4, 5, 8), (1, 2, 5, 8)), ((1, 4, 1, 8), (1, 2, 9, 8))
COPIED = ((1, 4, 1, 8), (1, 4, 9, 8))
SCORES, GROUPED, ROUTER = ((1, 4, 1, 9),), ((1, 2, 2, 9),), ((1, 4),)


def trace(shapes: dict[Any, int], runtime: str = "", **ops: int) -> Trace:
    named = Counter({f"aten::{name}": n for name, n in ops.items()})
    return Trace(named, Counter(), Counter({runtime: 3} if runtime else {}), STEPS, shapes=Counter(shapes))


def found(monkeypatch: pytest.MonkeyPatch, probed: str, made: Trace) -> Any:
    """The finding where the short pass says `probed`."""
    monkeypatch.setattr(attention, "effective_choice", lambda seen: probed)
    return find("attention", Observation(tiny("llama"), None, Plan(LoadPlan(ModelSource("random"))), lambda: made))


def test_softmax_is_of_attention_by_its_dimensions_and_grouped_by_its_heads() -> None:
    made = trace({(SOFTMAX, SCORES): 3, (SOFTMAX, GROUPED): 2, (SOFTMAX, ROUTER): 7})
    counted = traced_calls(made, Heads(4, 2))
    assert (counted.eager, counted.grouped) == (3, 2)
    assert traced_calls(made, Heads(4, 4)).eager == 5


def test_texts_and_heads_in_one_dimension_count_where_no_function_of_attention_is_called() -> None:
    made = trace({("aten::softmax", ((16, 5, 5),)): 3, ("aten::softmax", ((6, 5, 5),)): 2})
    assert traced_calls(made, Heads(8, 8), inline=True).eager == 3 and traced_calls(made, Heads(8, 8)).eager == 0


def test_the_softmax_inside_of_sdpa_is_not_eager_attention() -> None:
    made = trace({(SDPA, NEW): 4, (SOFTMAX, SCORES): 4}, _scaled_dot_product_attention_math=4)
    counted = traced_calls(made, Heads(4, 2))
    assert (counted.sdpa, counted.eager) == (4, 0)


FULL = LAYERS * STEPS
CASES = [
    ("sdpa", {(SDPA, NEW): FULL - 1, (SOFTMAX, SCORES): 1}, "", ("sdpa", FULL - 1, FULL)),
    ("sdpa", {(SOFTMAX, SCORES): FULL}, "", ("eager", FULL, FULL)),
    ("sdpa", {(SDPA, PROMPT): LAYERS - 1}, "cudaGraphLaunch", ("sdpa", LAYERS - 1, LAYERS)),
    ("sdpa", {}, "cudaGraphLaunch", ("sdpa", None, None)),
    ("sdpa", {}, "", ("sdpa", 0, FULL)),
    ("sdpa-gqa", {(SDPA, PROMPT): LAYERS, (SOFTMAX, GROUPED): FULL - LAYERS}, "", ("sdpa-gqa", FULL, FULL)),
    ("sdpa-gqa", {(SDPA, NEW): FULL - 2, (SDPA, COPIED): 2}, "", ("sdpa-gqa", FULL - 2, FULL)),
    (FA2, {}, "", (FA2, None, None)),
    (HUB_FA3, {}, "cudaGraphLaunch", (HUB_FA3, None, None)),
    (FA2, {(SDPA, NEW): FULL // 2}, "", (FA2, FULL // 2, FULL)),
    (FA2, {(SOFTMAX, SCORES): FULL}, "", (FA2, 0, FULL)),
]


@pytest.mark.parametrize(("probed", "shapes", "runtime", "wanted"), CASES)
def test_every_layer_of_every_visible_pass_is_counted(
    probed: str, shapes: dict[Any, int], runtime: str, wanted: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a trace cannot show is not counted, and no reason to doubt."""
    finding = found(monkeypatch, probed, trace(shapes, runtime))
    assert (finding.effective, finding.reached, finding.expected) == wanted


FORWARD = "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloop>>>"
COMBINE = "void cutlass::device_kernel<flash::enable_sm80_to_sm89<flash::FlashAttnFwdCombine<cute::tuple<>>>>"
BESIDE = {COMBINE: FULL, "flash::prepare_varlen_num_blocks_kernel(int)": FULL}
FLASH_CASES = [
    (FORWARD, FULL, {}, (FULL, FULL)),
    (FORWARD, FULL - 2, {(SDPA, NEW): 2}, (FULL - 2, FULL)),
    (FORWARD, FULL + 9, {}, (FULL, FULL)),
    ("void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<64>>", FULL - 3, {}, (FULL - 3, FULL)),
    ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", FULL, {(SDPA, NEW): FULL}, (0, FULL)),
]
"""Names of kernels as an H200 shows them (FlashAttention 3 of vLLM 0.33)."""


@pytest.mark.parametrize(("kernel", "n", "shapes", "wanted"), FLASH_CASES)
@pytest.mark.parametrize("runtime", ["", "cudaGraphLaunch"])
def test_flash_is_counted_by_the_kernel_that_computes_it_in_replays_too(
    kernel: str, n: int, shapes: dict[Any, int], wanted: tuple[int, int], runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trace(shapes, runtime)
    made.kernels.update({kernel: n} | BESIDE)
    finding = found(monkeypatch, HUB_FA3, made)
    assert (finding.effective, finding.reached, finding.expected) == (HUB_FA3, *wanted)


def test_what_cannot_be_seen_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "replayed CUDA graphs" in found(monkeypatch, "sdpa", trace({}, "cudaGraphLaunch")).proof
    assert "cannot be counted" not in found(monkeypatch, "sdpa", trace({(SDPA, NEW): FULL})).proof


def test_layers_that_read_the_keys_of_another_one_attend_too() -> None:
    config = AutoConfig.for_model(**COUNTED["shared layers"])
    model = AutoModelForCausalLM.from_config(config).eval()
    cache = model(input_ids=torch.tensor([[1, 2, 3]])).past_key_values
    assert len(cache.layers) == 2
    assert attending_layers(Observation(model, cache, Plan(LoadPlan(ModelSource("random"))))) == 4


def test_kv_heads_count_as_repeated_for_a_single_new_token_only() -> None:
    """Of a prompt transformers repeats them where there is a mask, in whatever implementation."""
    long = ((1, 4, 5, 8), (1, 4, 5, 8))
    made = trace({(SDPA, long): 4, (SDPA, COPIED): 3, (SDPA, NEW): 2, (SDPA, ((4, 5, 1), (4, 4, 1))): 1})
    assert traced_calls(made, Heads(4, 2)).repeated == 3
    assert traced_calls(made, Heads(4, 4)).repeated == 0


@pytest.mark.parametrize(
    ("few", "said"),
    [
        (ProbedCall("sdpa", (1, 4, 1, 8), (1, 2, 9, 8), gqa=True), "with 4 query heads on 2 KV heads, not repeated"),
        (ProbedCall("softmax", (1, 2, 2, 9)), "with 4 query heads on 2 KV heads, not repeated"),
        (ProbedCall("softmax", (1, 4, 1, 9)), ""),
        (ProbedCall("sdpa", (1, 4, 1, 8), (1, 2, 9, 8)), ""),  # broadcast, not told to group them
    ],
)
def test_the_short_pass_tells_the_heads_of_grouped_calls(few: ProbedCall, said: str) -> None:
    told = _probed([ProbedCall("sdpa", (1, 4, 5, 8), (1, 4, 5, 8)), few])
    assert told.endswith(said) and ("KV heads" in told) is bool(said)


@pytest.mark.parametrize("name", [FA2, HUB_FA3])
def test_without_a_trace_each_layer_should_have_called_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    none = replace(trace({(SOFTMAX, SCORES): 1}), steps=0)
    finding = found(monkeypatch, name, none)
    assert (finding.reached, finding.expected) == (LAYERS - 1, LAYERS) and "no trace" in finding.proof


def test_graphs_of_flex_attention_are_its_calls_and_other_graphs_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    known = [
        SimpleNamespace(compile_id="0/0", co_name="flex_attention", co_filename="flex_attention.py"),
        SimpleNamespace(compile_id="1/0", co_name="forward", co_filename="modeling_llama.py"),
    ]
    monkeypatch.setattr("torch._dynamo.utils.get_compilation_metrics", lambda: known)
    made = Trace(Counter({f"{REGION}0/0": 12, f"{REGION}1/0": 5}), Counter(), Counter(), STEPS)
    assert traced_calls(made, Heads(4, 2)).flex == 12
    assert compiled_calls(made) == {"1/0": 5}
    assert traced_calls(made, Heads(4, 2)).of("flex_attention") == 12 and traced_calls(made, Heads(4, 2)).of(FA2) == 0
