"""The custom decode loop on a GPU: captured as a CUDA graph it generates and stops as `generate` does."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.decode_loop import GREEDY, NEW, Told, greedy
from tests.support.decode_loop import prompt as on_cpu
from tests.support.tiny_models import CONFIGS, WINDOW, tiny
from tokendyno.backend.plan import STATIC, GeneratePlan
from tokendyno.backend.worker.loop.sampling import Sampling

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

MANUAL = GeneratePlan(cache=STATIC, loop="own", cuda_graphs="manual")


def prompt(tokens: int, batch: int = 1, padded: int = 0) -> Any:
    asked = on_cpu(tokens, batch, padded)
    return SimpleNamespace(ids=asked.ids.cuda(), mask=asked.mask.cuda(), batch_size=batch)


class Maker:
    """One loop and one cache, used repeatedly, as in a worker."""

    def __init__(self, model: Any, length: int, plan: GeneratePlan = MANUAL, eos: list[int] | None = None) -> None:
        import torch

        from tokendyno.backend.worker.loop.cache import StaticSlotCache
        from tokendyno.backend.worker.loop.loop import DecodeLoop

        self.cache = StaticSlotCache(model.config, length)
        manual = plan.cuda_graphs == "manual"
        self.loop = DecodeLoop(model, 0, eos or [], plan.compile_mode, manual)
        self.mode, self.eos = torch.inference_mode, eos

    def __call__(self, asked: Any, new: int = NEW, told: Any = None, seed: int = 0, how: Sampling = GREEDY) -> Any:
        with self.mode():
            return self.loop.generate(asked.ids, asked.mask, self.cache, new, told or Told(), how, seed, not self.eos)


@pytest.mark.parametrize("attention", [None, "eager"])
@pytest.mark.parametrize("architecture", CONFIGS)
def test_captured_greedy_text_is_that_of_generate(architecture: str, attention: str | None) -> None:
    import torch

    model = tiny(architecture, attention, device="cuda")
    if architecture == "gpt_oss":
        model.set_experts_implementation("batched_mm")
    for batch in (1, 3):
        made = Maker(model, 60)
        for asked in (prompt(5, batch), prompt(WINDOW, batch), prompt(20, batch, padded=4 if batch > 1 else 0)):
            told = Told()
            expected = greedy(model, asked)
            assert torch.equal(made(asked, told=told), expected)
            assert told.ids == expected[0, asked.ids.shape[1] :].tolist()
        assert made.loop.captures == 1


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune-no-cudagraphs"])
def test_compiled_then_captured_or_not(mode: str) -> None:
    import torch

    for graphs in ("auto",) if mode == "reduce-overhead" else ("off", "manual"):
        torch._dynamo.reset()
        model, asked = tiny("gpt_oss" if mode == "default" else "olmo3", device="cuda"), prompt(5)
        if mode == "default":
            model.set_experts_implementation("batched_mm")
        plan = GeneratePlan(cache=STATIC, loop="own", compile_mode=mode, cuda_graphs=graphs)  # type: ignore[arg-type]
        made = Maker(model, 60, plan)
        for _ in range(2):
            assert torch.equal(made(asked), greedy(model, asked))


def test_an_end_of_text_is_seen_late_and_trimmed() -> None:
    import torch

    model, asked = tiny("qwen3", device="cuda"), prompt(5, 3)
    free = greedy(model, asked)
    eos = [int(free[0, 12]), int(free[-1, 9]), int(free[1, 10])]
    expected = greedy(model, asked, eos=eos)
    assert expected.shape[1] < free.shape[1]
    made = Maker(model, 60, eos=eos)
    told = Told()
    assert torch.equal(made(asked, told=told), expected)
    assert len(told.ids) == expected.shape[1] - 5


def test_a_seed_gives_the_same_text_captured_or_not_and_on_a_cpu() -> None:
    model, asked, warm = tiny("llama", device="cuda"), prompt(6, 2), Sampling(1.2, 20, 0.9)
    texts = []
    for plan in (MANUAL, GeneratePlan(cache=STATIC, loop="own")):
        made = Maker(model, 60, plan)
        texts += [made(asked, seed=seed, how=warm).tolist() for seed in (1, 2)]
    assert texts[0] == texts[2]
    assert texts[1] == texts[3]
    assert texts[0] != texts[1]


def test_a_cancel_costs_the_steps_under_way_and_no_more() -> None:
    from tokendyno.backend.worker.loop.loop import STEPS_AHEAD

    model, asked, told = tiny("gpt_oss", device="cuda"), prompt(5), Told(most=100)
    model.set_experts_implementation("batched_mm")
    made = Maker(model, 250)
    made(asked, 3)
    assert made(asked, 240, told).shape[1] == 105
    assert len(told.ids) == 100
    assert made.loop.steps <= 100 + STEPS_AHEAD
