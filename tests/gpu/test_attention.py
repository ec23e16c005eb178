"""Every implementation of attention on a GPU: proved in the ledger with the kernels that ran, alone and compiled."""

import re
from typing import Any

import pytest

from tests.support.refusals import skip_or_fail
from tests.support.tiny_models import CONFIGS, build
from tokendyno.backend import hardware
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations.axes.attention import Attention
from tools.bench.gpu.bench_cli import bench, tell

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

QWEN, BERT = "random:Qwen3-0.6B", "random:bert-base-uncased"
REPLAYED = ",cache=static,compile=reduce-overhead"
NAMES = [choice.name for choice in Attention.choices if choice.name != "auto"]
ARMS = [
    *((QWEN, name, "") for name in NAMES),
    *((QWEN, name, REPLAYED) for name in NAMES if name != "flex_attention"),
    *((BERT, name, "") for name in NAMES if name != "sdpa-gqa"),
    *(("pocket", name, "") for name in NAMES if not name.startswith("sdpa")),
]
GROUPED = [name for name in CONFIGS if name != "gpt_oss"]


def runnable(model: str, arm: str) -> None:
    """Skip if the arm cannot run here and that is as expected; fail if it is refused for another reason."""
    checked = check(parse_arm(model, arm), resolve(model), hardware.detect(), Workload(prompt="Once"))
    if checked.blocked:
        skip_or_fail(arm.partition(",")[0], checked.blocked[0].reason, model)


def row(model: str, arm: str, tokens: int = 64) -> dict[str, Any]:
    """The ledger row of attention after a run of this arm."""
    runnable(model, arm)
    name = f"attention-{model}-{arm}".replace("random:", "").replace("=", "-").replace(",", "_").replace("/", "-")
    document = bench(name, f"run --model {model} --arm {arm} --prompt-tokens 64 --max-new-tokens {tokens}")
    tell(document)
    (found,) = (row for row in document["arms"][0]["evidence"] if row["axis"] == "attention")
    print(found)
    return dict(found)


@pytest.mark.parametrize(("model", "name", "beside"), ARMS)
def test_each_is_in_effect(model: str, name: str, beside: str) -> None:
    found = row(model, f"attention={name}{beside},dtype=bfloat16")
    assert found["effective"] == found["planned"], found
    assert found["status"] in ("verified", "fallback")


def test_the_proof_of_sdpa_names_its_kernels() -> None:
    found = row(QWEN, "attention=sdpa")
    assert re.search(r"sdpa: (flash|cuDNN|memory-efficient|math) \(\d+ x ", found["proof"]), found


# --- grouped heads, in this process ---------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    from tokendyno.backend.worker.patch import attention

    attention.register_grouped_attention()


def tensors(dtype: str, places: int = 300) -> Any:
    import torch

    torch.manual_seed(0)
    number = getattr(torch, dtype)
    query = torch.randn(2, 32, 1, 128, dtype=number, device="cuda")
    keys, values = (torch.randn(2, 8, places, 128, dtype=number, device="cuda") for _ in range(2))
    mask = torch.rand(2, 1, 1, places, device="cuda") > 0.3
    mask[..., 0] = True
    return query, keys, values, mask


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("dtype", "nearness"), [("float32", 2e-3), ("bfloat16", 2e-2), ("float16", 4e-3)])
def test_one_query_is_attention(dtype: str, nearness: float, compiled: bool) -> None:
    import torch

    from tokendyno.backend.worker.patch.attention import one_query

    query, keys, values, mask = tensors(dtype)
    exact = [t.double() for t in (query, keys.repeat_interleave(4, 1), values.repeat_interleave(4, 1))]
    wanted = torch.nn.functional.scaled_dot_product_attention(*exact, attn_mask=mask)
    torch._dynamo.reset()
    made = (torch.compile(one_query) if compiled else one_query)(query, keys, values, mask, 128**-0.5)
    torch.testing.assert_close(made.double(), wanted, atol=nearness, rtol=0)


def test_it_copies_no_keys_where_sdpa_does() -> None:
    import torch
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    from tokendyno.backend.worker.patch.attention import grouped_attention

    query, keys, values, mask = tensors("bfloat16", places=8192)
    module = type("Module", (), {"num_key_value_groups": 4, "is_causal": True})()
    extra = {}
    for function in (grouped_attention, sdpa_attention_forward):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        function(module, query, keys, values, mask, scaling=128**-0.5)
        extra[function.__name__] = torch.cuda.max_memory_allocated() - before
    copies = 2 * 4 * keys.nbytes
    assert extra["sdpa_attention_forward"] >= copies > 4 * extra["grouped_attention"], extra


@pytest.mark.parametrize("architecture", GROUPED)
def test_its_text_is_that_of_sdpa(architecture: str) -> None:
    """In float32, so that the order of summation cannot change the text; padded, past the window, and compiled."""
    import torch

    ids = torch.arange(5, 17, device="cuda")[None].repeat(2, 1)
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    more: dict[str, Any] = {"attention_mask": mask, "max_new_tokens": 24, "do_sample": False}
    wanted = build(architecture, "sdpa", device="cuda").generate(ids, **more)
    model = build(architecture, "sdpa-gqa", device="cuda")
    for settings in (
        {},
        {"cache_implementation": "static", "disable_compile": True},
        {"cache_implementation": "static"},
    ):
        assert torch.equal(model.generate(ids, **more, **settings), wanted), settings
