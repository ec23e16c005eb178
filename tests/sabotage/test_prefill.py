"""prefill: a prompt that is read in other chunks than were asked for, in one pass, more than once, or not all of it; or
that is not compiled. Captured ones: tests/gpu/test_sabotage.py."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import pytest
from transformers import GenerationConfig
from transformers.generation.utils import GenerationMixin

from backend.worker.loop.step import Step
from backend.worker.runners.decode import GenerateRunner
from backend.worker.runners.loop import LoopRunner
from tests.sabotage.ledger_of import ledger
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import LAYERS, llama, long_llama
from tests.sabotage.test_compile import eager_layers, forgotten  # noqa: F401

pytestmark = pytest.mark.filterwarnings("ignore")
Patch = Callable[[], AbstractContextManager[Any]]
Split = Callable[[int], int]


def cut_otherwise(size: Split, measured: Callable[[], bool] = lambda: True) -> Patch:
    """`generate` reads chunks of another size; 0: one pass."""

    @contextmanager
    def broken() -> Iterator[None]:
        plain = GenerationMixin._prefill

        def prefill(model: Any, ids: Any, settings: Any, *more: Any, **named: Any) -> Any:
            if settings.prefill_chunk_size and measured():
                settings.prefill_chunk_size = size(settings.prefill_chunk_size) or None
            return plain(model, ids, settings, *more, **named)

        with mock.patch.object(GenerationMixin, "_prefill", prefill):
            yield

    return broken


def in_the_measured_run(break_it: Callable[[Callable[[], bool]], Patch]) -> Patch:
    """Broken while a run is measured alone."""

    @contextmanager
    def broken() -> Iterator[None]:
        plain, within = GenerateRunner._measure, [False]

        def measure(*args: Any) -> None:
            within[0] = True
            try:
                plain(*args)
            finally:
                within[0] = False

        with mock.patch.object(GenerateRunner, "_measure", measure), break_it(lambda: within[0])():
            yield

    return broken


def read_by(change: Callable[[Step, Any, Any, Any, Any], Any], measured: Callable[[], bool] = lambda: True) -> Patch:
    """The custom decode loop reads its prompt otherwise."""

    @contextmanager
    def broken() -> Iterator[None]:
        plain = Step._read

        def read(step: Step, ids: Any, mask: Any, positions: Any) -> Any:
            return change(step, plain, ids, mask, positions) if measured() else plain(step, ids, mask, positions)

        with mock.patch.object(Step, "_read", read):
            yield

    return broken


def in_one_pass(step: Step, read: Any, ids: Any, mask: Any, positions: Any) -> Any:
    with mock.patch.object(step, "_chunk", 0):
        return read(step, ids, mask, positions)


def in_halves(step: Step, read: Any, ids: Any, mask: Any, positions: Any) -> Any:
    with mock.patch.object(step, "_chunk", step._chunk // 2):
        return read(step, ids, mask, positions)


def once_more_in_one_pass(step: Step, read: Any, ids: Any, mask: Any, positions: Any) -> Any:
    """Chunks that are thrown away."""
    read(step, ids, mask, positions)
    step.cache.reset()
    return in_one_pass(step, read, ids, mask, positions)


def without_the_first_chunk(step: Step, read: Any, ids: Any, mask: Any, positions: Any) -> Any:
    chunk = step._chunk
    return read(step, ids[:, chunk:], mask[:, chunk:], positions[:, chunk:])


def the_first_chunk_twice(step: Step, read: Any, ids: Any, mask: Any, positions: Any) -> Any:
    ids = ids.clone()
    ids[:, step._chunk : 2 * step._chunk] = ids[:, : step._chunk]
    return read(step, ids, mask, positions)


def uncompiled(measured: Callable[[], bool] = lambda: True) -> Patch:
    """The pass that was made for the prompt is not used."""

    @contextmanager
    def broken() -> Iterator[None]:
        plain = Step.begin

        def begin(step: Step, ids: Any, mask: Any, seed: int, eos: list[int], replay: bool = True) -> None:
            plain(step, ids, mask, seed, eos, not measured())

        with mock.patch.object(Step, "begin", begin):
            yield

    return broken


def read_once_more() -> Any:
    """The compiled pass is thrown away."""
    plain = Step.begin

    def begin(step: Step, ids: Any, mask: Any, seed: int, eos: list[int], replay: bool = True) -> None:
        plain(step, ids, mask, seed, eos, replay)
        plain(step, ids, mask, seed, eos, False)

    return mock.patch.object(Step, "begin", begin)


def never_asked_for() -> Any:
    """The setting is lost on the way to `generate`."""
    plain = GenerationConfig.__init__

    def begin(self: Any, **settings: Any) -> None:
        plain(self, **settings | {"prefill_chunk_size": None})

    return mock.patch.object(GenerationConfig, "__init__", begin)


OWN = (("cache", "static"), ("loop", "own"))
COMPILING = (*OWN, ("compile", "default"))
WORK = {"chunks-512": (("prompt_tokens", 1_100),), "chunks-2048": (("prompt_tokens", 4_200),)}


def _of(choice: str, manner: str, patch: Patch, beside: Any = (), tier: Any = "full") -> Sabotage:
    return Sabotage("prefill", choice, manner, patch, beside, long_llama, WORK[choice], tier=tier)


SABOTEURS = [
    _of("chunks-512", "in one pass", cut_otherwise(lambda size: 0), tier="slow"),
    _of("chunks-512", "in one pass in the measured run", in_the_measured_run(
        lambda measured: cut_otherwise(lambda size: 0, measured)
    )),
    _of("chunks-512", "in chunks of half the size", cut_otherwise(lambda size: size // 2)),
    _of("chunks-512", "in chunks of other sizes", cut_otherwise(lambda size: size - 1)),
    _of("chunks-512", "the setting is lost", never_asked_for),
    _of("chunks-512", "by the custom loop: in one pass", read_by(in_one_pass), OWN),
    _of("chunks-512", "by the custom loop: in one pass in the measured run", in_the_measured_run(
        lambda measured: read_by(in_one_pass, measured)
    ), OWN),
    _of("chunks-512", "by the custom loop: in halves", read_by(in_halves), OWN),
    _of("chunks-512", "by the custom loop: once more in one pass", read_by(once_more_in_one_pass), OWN),
    _of("chunks-512", "by the custom loop: without the first chunk", read_by(without_the_first_chunk), OWN),
    _of("chunks-512", "by the custom loop: the first chunk twice", read_by(the_first_chunk_twice), OWN),
    *(
        Sabotage("prefill", "compiled", manner, patch, COMPILING, llama, tier="full")
        for manner, patch in (
            ("not compiled", uncompiled()),
            ("not compiled in the measured run", in_the_measured_run(uncompiled)),
            ("half of the layers", lambda: eager_layers(lambda n: n >= LAYERS // 2)),
            ("read once more uncompiled", read_once_more),
        )
    ),
    _of("chunks-2048", "in one pass", cut_otherwise(lambda size: 0), tier="slow"),
    _of("chunks-2048", "in chunks of half the size", cut_otherwise(lambda size: size // 2)),
    _of("chunks-2048", "by the custom loop: in one pass", read_by(in_one_pass), OWN),
]  # fmt: skip
assert issubclass(LoopRunner, GenerateRunner), "the measured run of the custom loop is another"
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)


@pytest.mark.slow
@pytest.mark.parametrize("beside", [(), OWN], ids=["generate", "own"])
def test_rows_that_count_passes_know_of_those_of_a_chunk(beside: tuple[tuple[str, str], ...]) -> None:
    """Of a mixture, with fused projections: each has calls, products or rows that every pass should make."""
    rows = ledger({"prefill": "chunks-512", "projections": "fused", **dict(beside)}, prompt_tokens=1_900)
    counted = ("attention", "experts", "projections", "loop", "prefill", "dtype", "cache")
    assert {axis: rows[axis].status for axis in counted} == dict.fromkeys(counted, "verified")
