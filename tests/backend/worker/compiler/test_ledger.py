"""torch.compile in the worker: the ledger holds what it really did, and what the rules say of it is so."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sabotage.small_models import llama, mistral
from tests.support.compiling import own_folder
from tests.support.local_worker import LocalWorker
from tests.support.tiny_models import tiny
from tests.support.worker import SENTENCE
from tokendyno.backend import paths
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.counts import RunCounts
from tokendyno.backend.evidence import Finding
from tokendyno.backend.hardware import detect
from tokendyno.backend.messages import Annotation, Compiled, Finished, Generate, Progress, Started
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan, Plan

torch = pytest.importorskip("torch")

from torch._dynamo.utils import CompilationMetrics, clear_compilation_metrics  # noqa: E402

from tokendyno.backend.worker.compiler.ledger import Compiling, graphs_of  # noqa: E402

COMPILED: dict[str, Any] = {"cache": "static", "compile": "default"}
slow, full = pytest.mark.slow, pytest.mark.full
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]  # warnings of the compiler's own


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with own_folder(tmp_path, monkeypatch):
        yield tmp_path
    clear_compilation_metrics()  # other tests of this process read them


class Bench:
    """Does in this process what a worker does, run after run, on one model."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.worker = LocalWorker(self.plan().load)

    def plan(self, **choices: str) -> Plan:
        checked = check(make_config(self.model, choices), resolve(self.model), detect(), Workload(prompt=SENTENCE))
        return checked.plan

    def run(self, length: int = 12, batch: int = 1, warmup: bool = True, act: Any = None, **choices: str) -> Finished:
        return self.carry_out(self.plan(**choices), length, batch, warmup, act)

    def carry_out(self, plan: Plan, length: int = 12, batch: int = 1, warmup: bool = True, act: Any = None) -> Finished:
        self.worker.act = act or (lambda event: None)
        return self.worker.run(Generate(plan, SENTENCE, 8, length, batch, 0.0, 0, True, warmup))

    def sent(self, kind: type) -> list[Any]:
        return [event for event in self.worker.events if isinstance(event, kind)]


def finding(finished: Finished, axis: str) -> Finding:
    return next(row for row in finished.findings if row.axis == axis)


def test_stages_of_each_graph_add_up_to_its_seconds_and_later_tuning_is_counted_with_it() -> None:
    def record(**values: Any) -> CompilationMetrics:
        return CompilationMetrics(**values)

    first = record(
        compile_id="0/0",
        entire_frame_compile_time_s=9.0,
        backend_compile_time_s=7.0,
        code_gen_time_s=4.0,
        compile_time_autotune_time_us=1_500_000,
    )
    second = record(compile_id="0/1", entire_frame_compile_time_s=1.0, recompile_reason="0/0: size changed")
    tuned = record(compile_id="0/0", is_runtime=True, runtime_triton_autotune_time_us=250_000)
    graphs = graphs_of([first, tuned, record(compile_id="1/0", fail_type="Unsupported"), second, tuned])
    assert [(graph.id, graph.seconds, graph.guard) for graph in graphs] == [
        ("0/0", 9.0, ""),
        ("0/1", 1.0, "size changed"),
    ]
    assert graphs[0].stages_s == {"dynamo": 2.0, "inductor": 3.0, "codegen": 2.5, "autotune": 2.0}
    assert graphs[1].stages_s == {"dynamo": 1.0, "inductor": 0.0, "codegen": 0.0, "autotune": 0.0}


# --- the ledger -----------------------------------------------------------------------------------


def test_what_is_not_compiled_has_no_ledger_and_no_marks_of_the_compiler() -> None:
    bench = Bench(llama(num_hidden_layers=1))
    finished = bench.run(cache="static")
    assert finished.compiled is None and finished.counts.compilation.graphs == 0
    assert finding(finished, "compile").effective == "off"
    assert finding(finished, "cuda_graphs").effective == "off"
    assert finding(finished, "compile_cache").effective == "torch"
    assert not {mark.kind for mark in bench.sent(Annotation)} & {"compile", "recompile", "graph_skip", "window"}


def test_recompiles_and_the_limit_at_which_dynamo_gives_up_are_in_the_ledger() -> None:
    """With Dynamo's eager backend, which compiles nothing further: sizes change until it gives up at the ninth."""
    counts = RunCounts()
    ledger = Compiling(torch.nn.Linear(1, 1), counts)
    ledger.begin(Plan(LoadPlan(ModelSource("random"))), 1, 8)
    assert ledger.ledger() is None
    step = torch.compile(lambda x: x.sin() + 1, dynamic=False, backend="eager")
    for size in range(2, 12):
        step(torch.ones(size))
    compiled = ledger.ledger()
    assert compiled is not None and [graph.guard[:33] for graph in compiled.graphs] == [
        "",
        *["tensor 'x' size mismatch at index"] * 7,
    ]
    assert compiled.breaks == {"not compiled: Dynamo recompile limit exceeded": 1}
    assert (counts.compilation.graphs, counts.compilation.recompiles, counts.compilation.graph_breaks) == (8, 7, 1)
    assert compiled.cold_s == 0 and (compiled.hits, compiled.misses) == (0, 0)


@full
def test_a_growing_cache_is_compiled_again_for_new_lengths_and_the_ledger_counts_how_often() -> None:
    bench = Bench(llama(num_hidden_layers=1))
    finished = bench.run(cache="dynamic", compile="default")
    row, compiled = finding(finished, "compile"), ledger(finished)
    assert row.effective == "default" and row.reached == row.expected == 11 * 8
    again = sum(1 for graph in compiled.graphs if graph.guard)
    assert again >= 1 and finished.counts.compilation.recompiles == again and f", {again} recompiles" in row.proof
    assert not [mark for mark in bench.sent(Annotation) if mark.kind in ("compile", "recompile")], "all in the warm-up"

    eager = bench.run(cache="dynamic")
    assert finding(eager, "compile").effective == "off", "the same model, without"


@full
def test_graphs_recompiles_and_their_guards_are_recorded_and_settings_are_kept_apart() -> None:
    bench = Bench(llama(num_hidden_layers=1))
    first = bench.run(**COMPILED)
    assert first.compiled is not None
    assert len(first.compiled.graphs) == 1 and first.compiled.graphs[0].guard == "" and first.compiled.breaks == {}
    assert 0 < first.compiled.graphs[0].seconds <= first.compiled.cold_s
    assert first.compiled.hits + first.compiled.misses == 1
    assert finding(first, "compile").effective == "default"
    assert [p.phase for p in bench.sent(Progress) if p.state == "begin"] == ["compile", "warmup", "run", "prove"]
    assert "graph 1" in {p.note for p in bench.sent(Progress) if p.phase == "compile"}

    assert finding(bench.run(cache="static"), "compile").effective == "off", "it was compiled, but not in this run"

    again = bench.run(**COMPILED)
    assert again.compiled == first.compiled, "what was compiled before is used again, with its cold seconds"
    assert [p.phase for p in bench.sent(Progress) if p.state == "begin"] == ["run", "prove"]

    wider = bench.run(batch=2, **COMPILED)
    assert wider.compiled is not None
    (_, second) = wider.compiled.graphs
    assert "size mismatch" in second.guard and "expected 1, actual 2" in second.guard
    assert "User stack" not in second.guard

    symbolic = bench.run(**COMPILED, shapes="dynamic")
    assert symbolic.compiled is not None and len(symbolic.compiled.graphs) == 1, "other settings, another ledger"
    assert finding(symbolic, "compile").effective == "default"


@full
def test_what_is_compiled_while_tokens_are_measured_is_marked_at_its_token() -> None:
    """Without a warm-up the first decode step compiles, and a window that fills compiles again."""
    bench = Bench(mistral(num_hidden_layers=1, sliding_window=16))
    finished = bench.run(warmup=False, **COMPILED)
    marks = {mark.token: mark for mark in bench.sent(Annotation) if mark.kind in ("compile", "recompile")}
    assert [(token, mark.kind) for token, mark in marks.items()] == [(1, "compile"), (2, "recompile"), (9, "recompile")]
    assert all(mark.seconds > 0 for mark in marks.values())
    assert "cumulative_length_int <= 15" in marks[9].text
    assert finished.compiled is not None and len(finished.compiled.graphs) == 3 and finished.compiled.cold_s == 0


@full
@pytest.mark.parametrize("how", ["print", "branch"])
def test_a_graph_break_on_purpose_is_in_effect_with_its_line_and_the_code_of_each_graph(how: str) -> None:
    bench = Bench(llama(num_hidden_layers=1))
    value = f"default:coordinate_descent_tuning=true;graph_break={how}"
    finished = bench.run(**COMPILED | {"compile": value})
    compiled, row = ledger(finished), finding(finished, "compile")
    assert row.effective == value and all("graph_break.py:" in reason for reason in compiled.breaks)
    assert f"{sum(compiled.breaks.values())} graph break" in row.proof and "graph_break.py:" in row.proof
    assert {code.id for code in finished.code} <= {graph.id for graph in compiled.graphs} and len(finished.code) > 1
    text = finished.code[0].text
    assert "def call(" in text and str(paths.scratch_folder(os.getpid())) not in text

    whole = bench.run(**COMPILED)
    assert ledger(whole).breaks == {} and len(whole.code) == 1, "it was taken out again"


# --- where compiled code is kept ------------------------------------------------------------------


def ledger(finished: Finished) -> Compiled:
    assert finished.compiled is not None
    return finished.compiled


@full
def test_a_fresh_cache_holds_nothing_and_torchs_own_does() -> None:
    bench = Bench(llama(num_hidden_layers=1))
    for _ in range(2):
        fresh = bench.run(**COMPILED, compile_cache="fresh")
        assert (ledger(fresh).hits, ledger(fresh).misses) == (0, 1)
        assert finding(fresh, "compile_cache").effective == "fresh"
        assert paths.scratch_folder(os.getpid()).is_dir()
        bench.run(**COMPILED)
    shared = bench.run(length=13, **COMPILED, compile_cache="torch")
    assert finding(shared, "compile_cache").effective == "torch"


@full
def test_artefacts_are_saved_and_loaded_again_with_the_seconds_that_it_took_before(caches: Path) -> None:
    bench = Bench(llama(num_hidden_layers=1))
    first = bench.run(**COMPILED, compile_cache="artefacts")
    saved = ledger(first)
    assert (saved.hits, saved.misses, saved.loaded_bytes) == (0, 1, 0) and saved.saved_bytes > 1000
    assert "no compile artefacts yet" in bench.sent(Started)[0].notes[-1]
    assert finding(first, "compile_cache").effective == "artefacts"
    (file,) = (caches / "artefacts").glob("*.bin")
    assert file.stat().st_mode & 0o777 == 0o600 and file.stat().st_size == saved.saved_bytes

    bench.worker.runner.session.compiling.settings = None  # as in another worker: nothing is left of it in this process
    second = bench.run(**COMPILED, compile_cache="artefacts")
    loaded = ledger(second)
    assert (loaded.hits, loaded.misses) == (1, 0)
    assert (loaded.loaded_bytes, loaded.saved_bytes) == (saved.saved_bytes, 0)
    assert loaded.cold_before_s == pytest.approx(saved.cold_s)
    row = finding(second, "compile_cache")
    assert row.effective == "artefacts" and f"it took {saved.cold_s:.1f} s before" in row.proof
    assert "artefact" not in "".join(bench.sent(Started)[0].notes)

    file.write_bytes(b"rubbish")
    bench.worker.runner.session.compiling.settings = None
    third = bench.run(**COMPILED, compile_cache="artefacts")
    assert ledger(third).misses == 1 and ledger(third).saved_bytes > 1000, "saved anew"
    assert "ignored" in bench.sent(Started)[0].notes[-1]


def test_generate_raises_the_limit_and_it_is_put_back() -> None:
    """By the patch that the worker has around it."""
    ids, config = torch.tensor([[5, 6, 7, 8, 9]]), torch._dynamo.config
    before = config.recompile_limit
    with config.patch({"recompile_limit": before}):
        tiny("llama").generate(ids, max_new_tokens=2, do_sample=False, eos_token_id=None, prefill_chunk_size=2)
        assert config.recompile_limit == 64 != before, "transformers no longer raises it"
    assert config.recompile_limit == before
