"""`experts=triton`: our kernels compute what transformers' own code does with dequantized weights, and are used."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.test_kernels import rows
from tests.gpu.test_matvec import build, replaced
from tests.gpu.test_own import Maker, prompt
from tests.support.quantization import PACKED
from tests.support.tiny_models import WINDOW
from tests.support.whole_layers import MIXTURES
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.load.loader import apply_patches
from tokendyno.backend.worker.patch.experts import TRITON
from tokendyno.backend.worker.patch.projections import fuse
from tools.bench.gpu.bench_cli import bench

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

KINDS = ["mxfp4", "bfloat16", "float16", "float32", "joined", "gelu", "squared"]
"""joined: bfloat16, gate above up, SiLU and no biases, as in most mixtures; gelu: with Gemma 4's activation; squared:
without a gate, as in Nemotron-H; the others are those of gpt-oss."""
SHAPES = [(32, 4, 2880, 2880), (8, 2, 192, 96), (5, 3, 96, 160), (128, 4, 288, 2880), (128, 8, 2048, 768)]
"""Experts, how many a token takes, hidden and inner width: gpt-oss-20b, pocket, odd ones, and Qwen3-30B-A3B."""
ROUTERS: list[tuple[str, dict[str, Any]]] = [
    *MIXTURES.items(),
    ("qwen3_moe", MIXTURES["qwen3_moe"] | {"norm_topk_prob": False}),
    ("glm4_moe", MIXTURES["glm4_moe"] | {"n_group": 1, "topk_group": 1, "norm_topk_prob": False}),
]
"""Softmax over the chosen, or over all, and sigmoids with a correction, in groups or not, normalized or not."""
FUSED = "cache=static,loop=own,cuda_graphs=manual,projections=fused,kernels=local"


class Mixture:
    """Random experts, as the kernels read them and in double precision."""

    def __init__(self, kind: str, experts: int, top: int, hidden: int, inner: int) -> None:
        import torch
        from transformers.integrations.mxfp4 import convert_moe_packed_tensors

        torch.manual_seed(experts)
        self.top, self.joined = top, kind in ("joined", "gelu", "squared")
        self.gate: tuple[float, ...] = (
            (float("inf"), 1.0, 0.0, 0.0, 1.0) if self.joined else (7.0, 1.702, 1.0, 0.0, 1.0)
        )
        self.squared = kind == "squared"
        if self.squared:
            self.gate = (*self.gate, 1.0)
        if kind == "gelu":
            self.gate = (float("inf"), math.sqrt(8 / math.pi), 0.0, 0.044715, 1.0)
        self.dtype = torch.bfloat16 if self.joined or kind == "mxfp4" else getattr(torch, kind)
        self.parts, self.exact = [], []
        for lines, columns in ((inner if self.squared else 2 * inner, hidden), (hidden, inner)):
            bias = torch.randn(experts, lines, device="cuda", dtype=self.dtype) / 5
            if kind == "mxfp4":
                shape = experts, lines, columns // 32
                blocks = torch.randint(0, 256, (*shape, 16), dtype=torch.uint8, device="cuda")
                scales = torch.randint(119, 123, shape, dtype=torch.uint8, device="cuda")
                self.parts.append((blocks, scales, bias))
                wide = convert_moe_packed_tensors(blocks, scales)
            else:
                weight = torch.randn(experts, lines, columns, device="cuda", dtype=self.dtype) / 20
                self.parts.append((weight, None, None if self.joined else bias))
                bias = 0 * bias if self.joined else bias
                wide = weight.transpose(1, 2)
            self.exact.append((wide, bias))

    def __call__(self, x: Any, chosen: Any, shares: Any) -> Any:
        """x (T, K) in double precision."""
        import torch

        found = torch.zeros_like(x)
        limit, alpha, one, cubic = self.gate[:4]
        (up, up_bias), (down, down_bias) = self.exact
        for row in range(len(x)):
            for expert, share in zip(chosen[row].tolist(), shares[row], strict=True):
                both = x[row] @ up[expert].double() + up_bias[expert].double()
                if self.squared:
                    middle = torch.relu(both).square()
                else:
                    gate, more = both.chunk(2) if self.joined else (both[::2], both[1::2])
                    gate = gate.clamp(max=limit)
                    middle = (more.clamp(-limit, limit) + one) * gate * torch.sigmoid(alpha * (gate + cubic * gate**3))
                found[row] += share * (middle @ down[expert].double() + down_bias[expert].double())
        return found


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("early")
def test_one_token_is_computed_as_in_double_precision(kernels: Any, kind: str, shape: tuple[int, ...]) -> None:
    """Router, choice of experts, activation and weighted sum, with the norm before and the residual after."""
    import torch

    experts, top, hidden, _ = shape
    made = Mixture(kind, *shape)
    per = kernels.experts.per_word(made.parts[0][0])
    x, norm = torch.randn(hidden, device="cuda", dtype=made.dtype), torch.rand(hidden, device="cuda") + 0.5
    weight, bias = (torch.randn(*size, device="cuda", dtype=made.dtype) / 9 for size in ((experts, hidden), (experts,)))
    normed = x.double() * torch.rsqrt(x.double().square().mean() + 1e-5) * norm.double()
    scores = weight.double() @ normed + bias.double()
    best, chosen = scores.topk(top)
    wanted = made(normed[None], chosen[None], best.softmax(0)[None])[0]
    logits, *vector = kernels.experts.router(x, norm, 1e-5, weight, bias, per)
    torch.testing.assert_close(logits.double(), scores, atol=1e-4, rtol=1e-4)
    out = torch.full((hidden,), float("nan"), device="cuda")
    how = kernels.description.Routing(top), kernels.experts.Gate(*made.gate)
    vector = kernels.experts.up(*vector, logits, made.parts[0], *how)
    kernels.experts.down(*vector, logits, made.parts[1], *how, x, out)
    assert float((out.double() - x.double() - wanted).norm() / wanted.norm()) < 2e-4


@pytest.mark.parametrize("kind", ["mxfp4", "bfloat16"])
@pytest.mark.usefixtures("early")
def test_few_programs_compute_what_many_do(kernels: Any, kind: str) -> None:
    """Programs that handle several groups of rows, some one more than others, and load ahead: bit by bit the same."""
    import torch

    experts, top, hidden, inner = 5, 3, 96, 160
    made = Mixture(kind, experts, top, hidden, inner)
    per = kernels.experts.per_word(made.parts[0][0])
    x, norm = torch.randn(hidden, device="cuda", dtype=made.dtype), torch.rand(hidden, device="cuda") + 0.5
    weight, bias = (torch.randn(*size, device="cuda", dtype=made.dtype) / 9 for size in ((experts, hidden), (experts,)))
    logits, *vector = kernels.experts.router(x, norm, 1e-5, weight, bias, per)
    found, chosen = [], (kernels.description.Routing(top), kernels.experts.Gate(*made.gate))
    for programs, stages in ((kernels.settings.ONCE, 1), (3, 1), (3, 3), (7, 4)):
        out = torch.full((hidden,), float("nan"), device="cuda")
        how = {"R": 2, "num_warps": 8, "STAGES": stages, "CTAS": programs}
        middle = kernels.experts.up(*vector, logits, made.parts[0], *chosen, tuned=how)
        kernels.experts.down(*middle, logits, made.parts[1], *chosen, x, out, tuned=how)
        found.append(out)
    assert not found[0].isnan().any()
    assert all(torch.equal(found[0], out) for out in found[1:])


@pytest.mark.parametrize("shape", [*SHAPES[:3], SHAPES[-1]], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tokens", [1, 7, 90, 300])
def test_several_tokens_are_computed_as_in_double_precision(
    kernels: Any, kind: str, shape: tuple[int, ...], tokens: int
) -> None:
    import torch

    experts, top, hidden, _ = shape
    made = Mixture(kind, *shape)
    x = torch.randn(tokens, hidden, device="cuda", dtype=made.dtype)
    chosen = torch.rand(tokens, experts, device="cuda").topk(top).indices
    shares = torch.rand(tokens, top, device="cuda").softmax(1).to(made.dtype)
    wanted = made(x.double(), chosen, shares.double())
    found = kernels.mixtures.forward(x, chosen, shares, *made.parts, kernels.experts.Gate(*made.gate))
    limit = 1e-4 if kind == "float32" else 2e-2
    assert float((found.double() - wanted).norm() / wanted.norm()) < limit


@pytest.mark.parametrize("least", [70, 110, 150])
@pytest.mark.parametrize("tokens", [7, 400])
def test_weights_of_any_size_are_decoded_exactly(kernels: Any, tokens: int, least: int) -> None:
    """Powers of two far from 1, down to 2**-57 and up to 2**62; compared column by column."""
    import torch

    made = Mixture("mxfp4", 5, 2, 96, 64)
    blocks, scales, bias = made.parts[1]
    scales = torch.randint(least, least + 40, scales.shape, dtype=torch.uint8, device="cuda")
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    made.parts[1], made.exact[1] = (blocks, scales, bias), (convert_moe_packed_tensors(blocks, scales), bias)
    x = torch.randn(tokens, 96, device="cuda", dtype=made.dtype)
    chosen = torch.rand(tokens, 5, device="cuda").topk(2).indices
    shares = torch.rand(tokens, 2, device="cuda").softmax(1).to(made.dtype)
    wanted = made(x.double(), chosen, shares.double())
    found = kernels.mixtures.forward(x, chosen, shares, *made.parts, kernels.experts.Gate(*made.gate))
    assert bool(((found.double() - wanted).norm(dim=0) <= 2e-2 * wanted.norm(dim=0)).all())


@pytest.mark.parametrize("kind", ["mxfp4", "bfloat16"])
def test_a_tie_takes_the_first_and_a_step_can_be_replayed(kernels: Any, kind: str) -> None:
    """The same result in many replays, whatever was there before."""
    import torch

    made = Mixture(kind, 32, 4, 2880, 2880)
    per = kernels.experts.per_word(made.parts[0][0])
    x, norm = torch.randn(2880, device="cuda", dtype=made.dtype), torch.ones(2880, device="cuda")
    weight, bias = torch.zeros(32, 2880, device="cuda", dtype=made.dtype), torch.zeros(32, device="cuda")
    bias[[3, 9, 17, 20, 31]] = 2.0
    out, how = torch.empty(2880, device="cuda"), (kernels.description.Routing(4), kernels.experts.Gate(*made.gate))

    def run() -> None:
        logits, *vector = kernels.experts.router(x, norm, 1e-5, weight, bias, per)
        vector = kernels.experts.up(*vector, logits, made.parts[0], *how)
        kernels.experts.down(*vector, logits, made.parts[1], *how, x, out)

    run()
    first = out.clone()
    normed = x.double() * torch.rsqrt(x.double().square().mean() + 1e-5)
    chosen = torch.tensor([[3, 9, 17, 20]], device="cuda")
    wanted = made(normed[None], chosen, torch.full((1, 4), 0.25, device="cuda", dtype=torch.double))[0]
    assert float((out.double() - x.double() - wanted).norm() / wanted.norm()) < 2e-4
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(12):
            run()
    for _ in range(50):
        out.fill_(float("nan"))
        graph.replay()
    assert torch.equal(out, first)


def with_triton(model: Any, whole: bool) -> Any:
    """`whole`: with the kernels for whole layers too."""
    if whole:
        fuse(model)
    more: dict[str, Any] = {"kernels": "local", "kernels_path": str(kernel_packages.BUNDLED)} if whole else {}
    apply_patches(model, LoadPlan(ModelSource("random"), device="cuda", experts=TRITON, **more))
    return model


@pytest.mark.parametrize(("architecture", "sizes"), ROUTERS, ids=str)
def test_a_router_and_its_experts_are_those_of_transformers(
    kernels: Any, architecture: str, sizes: dict[str, Any]
) -> None:
    """For one token, for seven, and as transformers calls the experts for them."""
    import torch
    from transformers import AutoConfig, AutoModel

    torch.manual_seed(1)
    model = AutoModel.from_config(AutoConfig.for_model(architecture, **sizes)).cuda()
    model.set_experts_implementation("batched_mm")
    mixture = [one for one in model.modules() if hasattr(one, "experts") and hasattr(one, "gate")][-1]
    norm, hidden = torch.rand(64, device="cuda") + 0.5, torch.randn(7, 64, device="cuda")
    router = mixture.gate
    with torch.no_grad():
        for one in (*mixture.parameters(), *mixture.buffers()):
            one.normal_(0, 0.2)
        normed = hidden * torch.rsqrt(hidden.square().mean(-1, keepdim=True) + 1e-5) * norm
        held = [getattr(mixture, name) for name in ("e_score_correction_bias", "expert_bias") if hasattr(mixture, name)]
        _, shares, chosen = router(normed, *held)
        wanted = mixture.experts(normed, chosen, shares)
        routing, parts = kernels.description.routing_of(router), kernels.experts.of(mixture.experts)
        gate = kernels.experts.gate_of(mixture.experts, getattr(router, "routed_scaling_factor", 1.0))
        beside = held[0] if held else getattr(router, "e_score_correction_bias", None)
        found = torch.full_like(hidden, float("nan"))
        for x, out in zip(hidden, found, strict=True):
            logits, *vector = kernels.experts.router(x, norm, 1e-5, router.weight, None, 1)
            vector = kernels.experts.up(*vector, logits, parts[0], routing, gate, beside)
            kernels.experts.down(*vector, logits, parts[1], routing, gate, x, out, beside)
        logits, vectors, _ = kernels.experts.router(hidden, norm, 1e-5, router.weight, None, 1)
        ids, factors = kernels.routing.route(logits, len(router.weight), routing, gate.factor, beside)
        assert torch.equal(ids.sort().values, chosen.sort().values.int())
        several = [
            kernels.mixtures.forward(vectors, ids, factors, *parts, gate, hidden, unsorted=most) for most in (0, 256)
        ]
        plain = [kernels.mixtures.compute(mixture.experts, normed[:n], chosen[:n], shares[:n]) for n in (1, 2, 7)]
    for one in (found - hidden, *(one - hidden for one in several), *plain):
        assert torch.allclose(one, wanted[: len(one)], atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("architecture", ["gpt_oss", *MIXTURES])
@pytest.mark.parametrize("whole", [False, True])
def test_captured_text_with_them_is_that_of_generate_without(whole: bool, architecture: str) -> None:
    """In float32, past the window, from prompts that are shorter and longer than it, and of three texts, padded."""
    import torch

    from tests.support.decode_loop import greedy

    plain, model = build(architecture), with_triton(build(architecture), whole)
    assert any(name.endswith(("DecoderLayer", "Block")) for name in replaced(model)) is whole
    made = Maker(model, 60)
    for asked in (prompt(5), prompt(WINDOW), prompt(20), prompt(6, 3), prompt(20, 3, padded=4)):
        one = made if asked.batch_size == 1 else Maker(model, 60)
        assert torch.equal(one(asked), greedy(plain, asked))


@pytest.mark.parametrize("architecture", ["gpt_oss", *MIXTURES])
@pytest.mark.parametrize("whole", [False, True])
def test_captured_prompts_give_the_text_of_generate_without(whole: bool, architecture: str) -> None:
    """A graph chooses experts anew in each replay: prompts of one length have other shares."""
    import torch

    from tests.support.decode_loop import NEW, Told, greedy
    from tokendyno.backend.worker.loop.cache import StaticSlotCache
    from tokendyno.backend.worker.loop.loop import DecodeLoop

    plain, model = build(architecture), with_triton(build(architecture), whole)
    for batch in (1, 3):
        cache = StaticSlotCache(model.config, 60)
        loop = DecodeLoop(model, 0, [], None, True, prefill_graphs=True)
        for tokens, padded in ((20, 0), (5, 0), (20, 4), (20, 0), (20, 7)):
            asked = prompt(tokens, batch, padded if batch > 1 else 0)
            asked.ids = torch.where(asked.mask > 0, (asked.ids + padded) % 90 + 3, asked.ids)
            with torch.inference_mode():
                cache.reset()
                made = loop.generate(asked.ids, asked.mask, cache, NEW, Told(), ignore_eos=True)
            assert torch.equal(made, greedy(plain, asked)), (batch, tokens, padded)


def packed_and_dense() -> tuple[Any, Any]:
    """The embedded model in MXFP4, as it lies in its file, and dequantized by transformers, both in float32."""
    import torch
    from transformers import AutoModelForCausalLM, Mxfp4Config

    from tokendyno.backend.worker.load.quantization import cast_experts, read_packed

    read_packed(True)
    packed = AutoModelForCausalLM.from_pretrained(PACKED, dtype=torch.float32, device_map="cuda").eval()
    read_packed(False)
    settings = Mxfp4Config(dequantize=True)
    dense = AutoModelForCausalLM.from_pretrained(
        PACKED, dtype=torch.float32, device_map="cuda", quantization_config=settings
    ).eval()
    cast_experts(dense)
    return packed, dense


@pytest.mark.parametrize("whole", [False, True])
def test_a_packed_checkpoint_speaks_as_its_dequantized_self(whole: bool) -> None:
    """The same probabilities of each next token, of a prompt and of steps that are given the next token."""
    import torch

    packed, dense = packed_and_dense()
    with_triton(packed, whole)
    ids = torch.randint(5, 3000, (1, 40), device="cuda", generator=torch.Generator("cuda").manual_seed(3))
    with torch.inference_mode():
        more: dict[str, Any] = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 160, "do_sample": False}
        text = dense.generate(ids, eos_token_id=None, **more)
        found, wanted = (model(text).logits.double().log_softmax(-1)[0] for model in (packed, dense))
        assert float((wanted.exp() * (wanted - found)).sum(-1).max()) < 1e-5
        for place, logits in scored(packed, text, ids.shape[1]):
            given = wanted[place]
            assert float((given.exp() * (given - logits.double().log_softmax(-1))).sum()) < 1e-3, place


@pytest.mark.parametrize("architecture", ["gpt_oss", *MIXTURES])
def test_whole_layers_in_bfloat16_are_as_near_to_float32_as_the_models_own_code(architecture: str) -> None:
    """By the median of what is wrong with each step's logits, after several prompts: now and then a router rounds
    another way, in a prompt for all steps after it."""
    import torch

    own, ours = build(architecture, "bfloat16"), with_triton(build(architecture, "bfloat16"), True)
    exact = build(architecture, "bfloat16").float()
    more: dict[str, Any] = {"max_new_tokens": 60, "do_sample": False, "eos_token_id": None}
    mine, theirs = [], []
    with torch.inference_mode():
        for seed in range(3, 8):
            ids = torch.randint(5, 97, (1, 20), device="cuda", generator=torch.Generator("cuda").manual_seed(seed))
            text = exact.generate(ids, attention_mask=torch.ones_like(ids), **more)
            wanted, other = (model(text).logits[0].double() for model in (exact, own))
            for place, logits in scored(ours, text, 20):
                mine.append((logits.double() - wanted[place]).norm())
                theirs.append((other[place] - wanted[place]).norm())
    assert float(torch.stack(mine).median()) <= 1.5 * float(torch.stack(theirs).median())


def scored(model: Any, text: Any, start: int) -> Iterator[tuple[int, Any]]:
    """Places of `text` (1, T) from `start` on, and logits of the step that is given the token there."""
    import torch

    from tokendyno.backend.worker.loop.cache import StaticSlotCache
    from tokendyno.backend.worker.loop.sampling import Sampling
    from tokendyno.backend.worker.loop.step import Step

    step = Step(model, StaticSlotCache(model.config, text.shape[1] + 20), 1, Sampling(), 0)
    step.begin(text[:, :start], torch.ones_like(text[:, :start]), 0, [])
    for place in range(start, text.shape[1] - 1):
        step.token.copy_(text[:, place : place + 1])
        logits = model(
            input_ids=step.token,
            attention_mask=step._masks(),
            position_ids=step.positions,
            past_key_values=step.cache,
            use_cache=True,
        ).logits[:, -1]
        yield place, logits[0]
        step.advance_slots()
        step.append(text[0, place + 1 : place + 2], logits)


@pytest.mark.parametrize("quantization", ["none", "mxfp4"])
@pytest.mark.parametrize("beside", ["", "cache=static,loop=own,cuda_graphs=manual", FUSED])
def test_the_ledger_counts_them_in_every_mixture_of_every_pass(quantization: str, beside: str) -> None:
    arm = ",".join(filter(None, [f"experts=triton,quantization={quantization}", beside]))
    found = rows("random:pocket", arm)
    assert {found[axis]["status"] for axis in ("experts", "quantization")} <= {"verified", "off"}, found
    assert (found["experts"]["effective"], found["experts"]["status"]) == ("triton", "verified"), found["experts"]


@pytest.mark.parametrize("texts", [1, 8])
@pytest.mark.parametrize("architecture", MIXTURES)
def test_no_row_of_the_fastest_bundle_is_amber(architecture: str, texts: int, tmp_path: Path) -> None:
    """With experts of a realistic size, alone and in a batch."""
    latent = "kv_lora_rank" in MIXTURES[architecture]
    sizes = {"hidden_size": 1024, "moe_intermediate_size": 512, "vocab_size": 32000}
    sizes |= {"num_key_value_heads": 16} if latent else {"head_dim": 64}
    sizes["num_local_experts" if architecture in ("mixtral", "minimax_m2") else "num_experts"] = 32
    sizes |= {"num_attention_heads": 16, "intermediate_size": 512, "max_position_embeddings": 2048}
    config = MIXTURES[architecture] | sizes | {"model_type": architecture, "dtype": "bfloat16"}
    if "sliding_attention" not in config.get("layer_types", ()):
        config["sliding_window"] = None
    (tmp_path / "config.json").write_text(json.dumps(config))
    line = f"run --model random:{tmp_path} --arm lowest-latency --batch-size {texts} --max-new-tokens 64"
    found = {row["axis"]: row for row in bench(f"{architecture}-{texts}", line)["arms"][0]["evidence"]}
    assert not [row for row in found.values() if row["status"] in ("partial", "no_effect", "fallback", "failed")], found
    assert found["experts"]["effective"] == "triton" and " x DecoderLayer" in found["kernels"]["proof"], found
