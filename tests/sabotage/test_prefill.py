"""prefill: a prompt that is read in other chunks than were asked for, or in one pass, or that is not compiled. Captured
ones: tests/gpu/test_sabotage.py."""

from collections.abc import Callable
from typing import Any
from unittest import mock

from transformers import GenerationConfig
from transformers.generation.utils import GenerationMixin

from tests.sabotage.saboteur import Patch, table, tests_of
from tests.sabotage.small_models import LAYERS, long_llama
from tests.sabotage.test_compile import COMPILES, COMPILING, OWN, eager_layers, forgotten  # noqa: F401
from tokendyno.backend.worker.loop.step import Step


def cut(size: Callable[[int], int]) -> Patch:
    """`generate` reads chunks of another size than the one that is given; 0: one pass."""
    original = GenerationMixin._prefill

    def prefill(model: Any, ids: Any, settings: Any, *args: Any, **kwargs: Any) -> Any:
        if settings.prefill_chunk_size:
            settings.prefill_chunk_size = size(settings.prefill_chunk_size) or None
        return original(model, ids, settings, *args, **kwargs)

    return lambda: mock.patch.object(GenerationMixin, "_prefill", prefill)


def never_asked_for() -> Any:
    """The setting is lost on the way to `generate`."""
    original = GenerationConfig.__init__

    def begin(self: Any, **settings: Any) -> None:
        original(self, **settings | {"prefill_chunk_size": None})

    return mock.patch.object(GenerationConfig, "__init__", begin)


def own_cut(size: Callable[[int], int]) -> Patch:
    """The same of the custom loop."""
    original = Step._read

    def read(step: Step, *prompt: Any) -> Any:
        with mock.patch.object(step, "_chunk", size(step._chunk)):
            return original(step, *prompt)

    return lambda: mock.patch.object(Step, "_read", read)


def uncompiled() -> Any:
    """The pass that was made for the prompt is not used."""
    original = Step.begin
    return mock.patch.object(
        Step, "begin", lambda step, ids, mask, seed, eos, replay=True: original(step, ids, mask, seed, eos, False)
    )


IN_ONE_PASS, IN_HALVES = {"in one pass": cut(lambda size: 0)}, {"in halves": cut(lambda size: size // 2)}
OTHER_SIZES, LOST = {"in chunks of other sizes": cut(lambda size: size - 1)}, {"the setting is lost": never_asked_for}
OWN_IN_ONE_PASS = {"in one pass, by the custom loop": own_cut(lambda size: 0)}
OWN_OTHERWISE = {"in halves, by the custom loop": own_cut(lambda size: size // 2)}
UNCOMPILED = {"not compiled": uncompiled, "half of the layers": eager_layers(lambda layer: layer >= LAYERS // 2)}


SABOTEURS = [
    *table(
        "prefill", {"chunks-512": IN_ONE_PASS | IN_HALVES | OTHER_SIZES | LOST}, model=long_llama, prompt_tokens=1_100
    ),
    *table("prefill", {"chunks-512": OWN_IN_ONE_PASS | OWN_OTHERWISE}, OWN, long_llama, prompt_tokens=1_100),
    *table("prefill", {"chunks-2048": IN_ONE_PASS | IN_HALVES}, model=long_llama, prompt_tokens=4_200),
    *table("prefill", {"chunks-2048": OWN_IN_ONE_PASS}, OWN, long_llama, prompt_tokens=4_200),
    *table("prefill", {"compiled": UNCOMPILED}, OWN | {"compile": "default"}, tier=COMPILING),
]
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS, *COMPILES)
