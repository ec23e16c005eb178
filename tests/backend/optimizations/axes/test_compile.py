"""compile, cuda_graphs and compile_cache: what goes together, and proofs that take effects for what they are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from torch._inductor import list_mode_options

from tests.support.machines import CPU, H200, facts, settled
from tests.support.proof import claimed
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.counts import counts_of
from tokendyno.backend.evidence import Evidence
from tokendyno.backend.export.script import script
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import all_axes, subject_of
from tokendyno.backend.plan import STATIC, CompileValues, GeneratePlan, LoadPlan, Plan
from tokendyno.backend.worker.prove.compile_log import break_places
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.profile import Trace
from tokendyno.backend.worker.witness import find

AXIS = {axis.name: axis for axis in all_axes()}
PLAN = Plan(LoadPlan(ModelSource("random"), device="cuda"), GeneratePlan(STATIC, "default"))
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
LLAMA = "random:Qwen3-0.6B"
WORK = Workload(prompt="Once")


def checked(machine: Any = H200, model: str = LLAMA, **choices: str) -> Checked:
    return check(make_config(model, choices), facts(model), machine, WORK)


def verdicts(arm: Checked, axis: str) -> list[tuple[str, dict[str, str]]]:
    return [(v.level, v.fix) for v in arm.verdicts if v.axis == axis and v.level in ("blocked", "fallback")]


# --- rules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("loop", "cache"),
    [("own", "dynamic"), ("own", "unwindowed"), ("generate", "quantized-fp8"), ("generate", "offloaded")],
)
def test_where_tensors_must_not_move_compiling_needs_the_static_cache(mode: str, loop: str, cache: str) -> None:
    whose = "loop" if loop == "own" else "compile"
    assert ("blocked", {"cache": "static"}) in verdicts(checked(compile=mode, loop=loop, cache=cache), whose)
    assert verdicts(checked(compile=mode, loop=loop, cache="static"), "compile") == []


def test_int8_of_torchao_is_noted_as_slow_where_the_compiler_does_not_tune() -> None:
    def noted(machine: Any = H200, **choices: str) -> bool:
        arm = checked(machine, cache="static", **choices)
        return any(v.level == "note" and "coordinate descent" in v.reason for v in arm.verdicts if v.axis == "compile")

    slow = [mode for mode in MODES if noted(compile=mode, quantization="torchao-int8")]
    tuned = {mode for mode, options in list_mode_options().items() if options.get("coordinate_descent_tuning")}
    assert slow == [mode for mode in MODES if mode not in tuned] and len(slow) == 2
    assert not noted(compile="default") and not noted(compile="default", quantization="torchao-fp8")
    assert not noted(CPU, compile="default", quantization="torchao-int8")


def test_how_a_checkpoint_is_packed_decides_whether_generate_compiles_it() -> None:
    """Against transformers' own classes, for every way that it can read."""
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING
    from transformers.quantizers.base import HfQuantizer

    inherited = HfQuantizer.is_compileable
    known = {name.removesuffix("_4bit").removesuffix("_8bit"): kind for name, kind in AUTO_QUANTIZER_MAPPING.items()}
    for name, kind in known.items():
        if name == "mxfp4":  # asks the machine, see `mxfp4_rules`
            continue
        model = replace(facts(LLAMA), quantization=name)
        choices = {"compile": "default", "cache": "static", "quantization": "none"}
        assert subject_of(model, H200, choices).skips_compilation is (kind.is_compileable is inherited), name
        assert not subject_of(model, H200, choices | {"loop": "own"}).skips_compilation


@pytest.mark.parametrize("mode", MODES[1:])
def test_on_a_cpu_the_other_modes_fall_back_to_default(mode: str) -> None:
    arm = checked(CPU, compile=mode, cache="static")
    assert arm.requested["compile"] == mode and arm.planned["compile"] == "default"
    assert arm.plan.generate.compile_mode == "default"
    assert arm.planned["cuda_graphs"] == "off"
    assert checked(CPU, compile="default", cache="static").planned["compile"] == "default"


@pytest.mark.parametrize("quantization", ["bnb-int8", "bnb-nf4", "quanto-int8"])
@pytest.mark.parametrize("machine", [CPU, H200], ids=["cpu", "h200"])
def test_what_generate_would_silently_leave_uncompiled_is_planned_off(quantization: str, machine: Any) -> None:
    arm = checked(machine, compile="reduce-overhead", cache="static", quantization=quantization)
    assert arm.planned["compile"] == "off" and arm.plan.generate.compile_mode is None
    assert arm.planned["cuda_graphs"] == "off"
    cached = checked(machine, compile="default", cache="static", quantization=quantization, compile_cache="fresh")
    assert "blocked" in [level for level, _ in verdicts(cached, "compile_cache")]
    own = checked(machine, compile="default", cache="static", quantization=quantization, loop="own")
    assert own.planned["compile"] == "default", "the custom loop asks nobody"
    packed = checked(machine, compile="default", cache="static", quantization="torchao-int8")
    assert packed.planned["compile"] == "default"


@pytest.mark.parametrize(
    ("machine", "choices", "planned"),
    [
        (H200, {"compile": "reduce-overhead", "cache": "static"}, "compile"),
        (H200, {"compile": "max-autotune", "cache": "static"}, "compile"),
        (H200, {"compile": "default", "cache": "static"}, "off"),
        (H200, {"compile": "max-autotune-no-cudagraphs", "cache": "static"}, "off"),
        (H200, {}, "off"),
        (CPU, {"compile": "reduce-overhead", "cache": "static"}, "off"),
    ],
)
def test_auto_is_what_the_compile_mode_does_on_this_machine(
    machine: Any, choices: dict[str, str], planned: str
) -> None:
    arm = checked(machine, **choices)
    assert arm.planned["cuda_graphs"] == planned and verdicts(arm, "cuda_graphs") == []


# --- proofs ---------------------------------------------------------------------------------------


STEPS, MATRICES = 5, 8
EVERY = STEPS * MATRICES


def seen(eager: Sequence[str] = (), decode: Sequence[str] = (), calls: int = 0, **counts: Any) -> Observation:
    """A measured run of that many decode steps, and a profile in which these operators ran after the first token."""
    ops = Counter({"Torch-Compiled Region: 7/1": calls} if calls else {})
    trace = Trace(ops, Counter(), Counter(), 4, Counter(decode or eager), Counter(eager))
    known: dict[str, Any] = {"counted_steps": STEPS, "matrices": MATRICES} | counts
    return Observation(None, None, PLAN, lambda: trace, counts_of(known))


IN_GRAPHS: dict[str, Any] = {"compiled_matrices": EVERY, "compiled_steps": STEPS}
REPLAYED = IN_GRAPHS | {"replayed_matrices": EVERY, "replayed_steps": STEPS}


def of_plan(look: Observation, **changes: Any) -> Observation:
    """The same of an arm with these fields of its generation."""
    made = msgspec.structs.replace(PLAN.generate, **changes)
    return replace(look, plan=msgspec.structs.replace(PLAN, generate=made))


def test_a_module_compiled_outside_of_generate_is_without_effect_and_the_row_says_what_to_do() -> None:
    wrapped = {"compile_mode": None, "compile_module": True}
    finding = find("compile", of_plan(seen(), **wrapped))
    assert Evidence("module", "module", finding).status == "no_effect"
    assert "set compile=default and cache=static" in finding.proof
    later = find("compile", of_plan(seen(**IN_GRAPHS), **wrapped))  # of a version that compiles it
    assert Evidence("module", "module", later).status == "verified"


UNFUSED: dict[str, Any] = {"options": (("epilogue_fusion", False),)}


@pytest.mark.parametrize(
    ("written", "given", "look", "status"),
    [
        ("default:backend=eager", {"backend": "eager"}, seen(calls=12), "verified"),
        ("default:backend=eager", {"backend": "eager"}, seen(**IN_GRAPHS), "failed"),
        ("default:backend=eager", {"backend": "eager"}, seen(), "failed"),
        ("default:fullgraph=true", {"fullgraph": True}, seen(**IN_GRAPHS), "verified"),
        ("default:fullgraph=true", {"fullgraph": True}, seen(**IN_GRAPHS, graph_breaks=1.0), "failed"),
        ("default:dynamic=true", {"dynamic": True}, seen(**IN_GRAPHS), "failed"),
        ("default:dynamic=false", {"dynamic": False}, seen(**IN_GRAPHS), "verified"),
        ("default:epilogue_fusion=false", UNFUSED, seen(**IN_GRAPHS, inductor_graphs=2, option_graphs=2), "verified"),
        ("default:epilogue_fusion=false", UNFUSED, seen(**IN_GRAPHS, inductor_graphs=2, option_graphs=1), "failed"),
        ("default:graph_break=print", {"graph_break": "print"}, seen(**IN_GRAPHS, graph_breaks=1), "failed"),
    ],
)
def test_a_value_that_had_no_effect_turns_the_row(
    written: str, given: dict[str, Any], look: Observation, status: str
) -> None:
    finding = find("compile", of_plan(look, compile_values=CompileValues(**given)))
    assert Evidence(written, written, finding).status == status


def test_values_reach_the_plan_and_the_script_and_stay_where_a_mode_falls_back() -> None:
    arm = checked(CPU, compile="reduce-overhead:fullgraph=true;dynamic=false", cache="static")
    assert arm.planned["compile"] == "default:dynamic=false;fullgraph=true"
    assert arm.plan.generate.compile_values == CompileValues(fullgraph=True, dynamic=False)
    assert 'CompileConfig(mode="default", dynamic=False, fullgraph=True)' in script(arm, facts(LLAMA), WORK)
    refused = checked(compile="default:backend=eager", cache="static", loop="own")
    assert ("blocked", {"loop": "generate"}) in verdicts(refused, "compile")
    tuned = checked(compile="default:coordinate_descent_tuning=true;graph_break=print", cache="static")
    text = script(tuned, facts(LLAMA), WORK)
    assert 'CompileConfig(mode=None, options={"coordinate_descent_tuning": True})' in text
    assert "break_graph(model, 'print')" in text.replace('"', "'") and "def break_graph" in text
    eager = checked(compile="default:backend=eager;combo_kernels=true", cache="static")
    assert ("blocked", {"compile": "default"}) in verdicts(eager, "compile")


def test_where_a_graph_broke_is_the_innermost_line_whatever_called_it() -> None:
    torch = pytest.importorskip("torch")
    from torch._dynamo.utils import graph_break_reasons

    def inner(x: Any) -> Any:
        torch._dynamo.graph_break()
        return x + 1

    torch._dynamo.reset()
    torch.compile(lambda x: inner(x) * 2, backend="eager")(torch.ones(2))
    (place,) = break_places(graph_break_reasons).values()
    assert place == f"test_compile.py:{inner.__code__.co_firstlineno + 1}"
    assert break_places([]) == {}


@pytest.mark.parametrize(
    ("look", "compile_", "graphs"),
    [
        (seen(), "off", "off"),
        (seen(calls=12), "off", "off"),
        (seen(**IN_GRAPHS), "default", "off"),
        (seen(**REPLAYED), "reduce-overhead", "compile"),
        (seen(**REPLAYED, tuned_kernels=12), "max-autotune", "compile"),
        (seen(**IN_GRAPHS, tuned_kernels=12), "max-autotune-no-cudagraphs", "off"),
        (seen(manual_replays=STEPS), "off", "manual"),
        (seen(**IN_GRAPHS, manual_replays=STEPS), "default", "manual"),
        (seen(**IN_GRAPHS, manual_replays=STEPS, tuned_kernels=12), "max-autotune-no-cudagraphs", "manual"),
    ],
)
def test_modes_and_graphs_are_told_apart_by_what_was_counted(look: Observation, compile_: str, graphs: str) -> None:
    """Always with a plan that says compile=default: it is not believed."""
    for name, expected in (("compile", compile_), ("cuda_graphs", graphs)):
        finding = find(name, look)
        assert claimed(AXIS[name], look) == {expected}, finding
        assert finding.reached == finding.expected, "what there was, was everywhere"


@pytest.mark.parametrize("axis", ["compile", "cuda_graphs"])
def test_one_token_has_no_step_that_could_be_compiled_or_replayed(axis: str) -> None:
    """A pass over the prompt may have been compiled all the same."""
    for calls in (0, 2):
        assert find(axis, seen(calls=calls, counted_steps=0.0)).outcome == "not_applicable"
        assert find(axis, seen(calls=calls)).outcome == ""


@pytest.mark.parametrize(
    ("look", "reached", "expected"),
    [
        (seen(**IN_GRAPHS), EVERY, EVERY),
        (seen(**IN_GRAPHS | {"compiled_matrices": 5}), 5, EVERY),
        (seen(**IN_GRAPHS | {"compiled_matrices": 16, "compiled_steps": 2}), 16, EVERY),
        (seen(("aten::scaled_dot_product_attention",) * 3, **IN_GRAPHS), EVERY, EVERY + 3),
        (seen(("aten::argmax", "aten::cat"), **IN_GRAPHS), EVERY, EVERY),
        (seen((), ("aten::mm",) * 9, **IN_GRAPHS), EVERY, EVERY),
    ],
)
def test_compiled_is_how_many_matrices_of_all_in_all_steps(look: Observation, reached: int, expected: int) -> None:
    finding = find("compile", look)
    assert finding.effective == "default" and (finding.reached, finding.expected) == (reached, expected), finding


@pytest.mark.parametrize(
    ("look", "reached", "expected"),
    [
        (seen(**REPLAYED), EVERY, EVERY),
        (seen(**REPLAYED | {"replayed_matrices": 30}), 30, EVERY),
        (seen((), ("aten::mm",) * 9, **REPLAYED), EVERY, EVERY + 9),
        (seen(manual_replays=STEPS), STEPS, STEPS),
        (seen(manual_replays=2), 2, STEPS),
        (seen(("aten::addmm",) * 4, manual_replays=STEPS), STEPS, STEPS + 4),
    ],
)
def test_captured_is_how_many_steps_and_nothing_beside_them(look: Observation, reached: int, expected: int) -> None:
    finding = find("cuda_graphs", look)
    assert (finding.reached, finding.expected) == (reached, expected), finding


OWN = {"own_code_files": 3, "compile_cold_s": 12.0}
"""Generated code of the worker's own cache."""
WRITTEN = {"cache_files_published": 40}
BEFORE = OWN | WRITTEN | {"fx_cache_hits": 2, "cache_files_before": 40}


@pytest.mark.parametrize(
    ("counts", "expected", "reached", "words"),
    [
        ({}, "unknown", None, "no generated code"),
        (OWN | WRITTEN, "torch", None, "40 of its files are shared now"),
        (OWN | {"fx_cache_misses": 3}, "fresh", None, "3 compiled in 12.0 s; the worker's cache was empty"),
        (BEFORE, "torch", None, "held 40 files"),
        (OWN | {"fx_cache_misses": 3, "artefacts_saved_bytes": 5000}, "artefacts", None, "5,000 bytes"),
        (
            OWN | {"fx_cache_hits": 3, "artefacts_loaded_bytes": 5000, "artefacts_cold_s": 31.0},
            "artefacts",
            (3, 3),
            "took 31.0 s before",
        ),
        (
            OWN | {"fx_cache_hits": 2, "fx_cache_misses": 1, "artefacts_loaded_bytes": 5000},
            "artefacts",
            (2, 3),
            "1 compiled",
        ),
    ],
)
def test_where_compiled_code_came_from_is_told_by_counts(
    counts: dict[str, Any], expected: str, reached: tuple[int, int] | None, words: str
) -> None:
    finding = find("compile_cache", seen(**counts))
    assert finding.effective == expected and words in finding.proof
    assert (finding.reached, finding.expected) == (reached or (None, None))


# --- the script -----------------------------------------------------------------------------------


def written(machine: Any, **choices: str) -> str:
    arm = settled(facts(LLAMA), choices, machine)
    arm.require_runnable()
    return script(arm, facts(LLAMA), WORK)


def test_the_script_compiles_in_the_planned_mode_and_makes_a_cpu_do_it_too() -> None:
    gpu = written(H200, compile="max-autotune")
    assert 'CompileConfig(mode="max-autotune")' in gpu and "_compile_all_devices" not in gpu
    assert "compile_config._compile_all_devices = True" in written(CPU, compile="default", cache="static")
    assert "dynamic=True" in written(H200, compile="default", cache="static", shapes="dynamic")
    growing = written(CPU, compile="default", cache="dynamic")
    assert "model.compile(**compile_config.to_dict())" in growing and "_compile_all_devices" not in growing
    assert "compile_config=compile_config" not in growing and "model.compile(" not in gpu
    assert "CompileConfig" not in written(H200, cache="static")
    assert "CompileConfig" not in written(H200, compile="default", loop="own"), "that loop compiles its own step"


def test_the_script_keeps_compiled_code_where_the_plan_says() -> None:
    assert "TORCHINDUCTOR_CACHE_DIR" not in written(H200, compile="default")
    fresh = written(H200, compile="default", compile_cache="fresh")
    assert 'os.environ["TORCHINDUCTOR_CACHE_DIR"]' in fresh and "artefacts" not in fresh
    saved = written(H200, compile="default", compile_cache="artefacts")
    assert "load_cache_artifacts(artefacts" in saved and "save_cache_artifacts()" in saved
    assert saved.index("load_cache_artifacts") < saved.index("from_config") < saved.index("save_cache_artifacts")


def test_why_a_graph_broke_is_told_in_one_short_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._dynamo.utils as dynamo

    monkeypatch.setattr(dynamo, "counters", {"graph_break": Counter({f"{'b' * 200}\n a hint": 1})})
    proof = find("compile", seen(**IN_GRAPHS, graph_breaks=2.0)).proof
    assert f"; 2 graph breaks ({'b' * 120}), " in proof.replace(", 2 graph", "; 2 graph")
    assert "0 graph breaks, 0 recompiles" in find("compile", seen(**IN_GRAPHS)).proof
    monkeypatch.setattr(dynamo, "counters", {"graph_break": Counter()})
    told = find("compile", seen(**IN_GRAPHS, graph_breaks=2.0, recompiles=3.0, cudagraph_skips=4.0)).proof
    assert told.endswith("2 graph breaks, 3 recompiles, 4 CUDA graphs skipped")
