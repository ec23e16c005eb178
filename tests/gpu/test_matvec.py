"""The bundled kernels compute what they replace, for any shape, and leave everything else alone."""

from pathlib import Path
from typing import Any

import pytest

from tests.gpu.test_own import Maker, prompt
from tests.support.fused_products import product_error
from tests.support.rotation import rotated
from tests.support.tiny_models import WINDOW
from tests.support.whole_layers import MODELS
from tests.support.whole_layers import build as on_cpu
from tokendyno.backend.hardware import kernel_packages

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]


def build(architecture: str, dtype: str = "float32") -> Any:
    return on_cpu(architecture, dtype, "cuda")


def with_kernels(model: Any) -> Any:
    from tokendyno.backend.models.source import ModelSource
    from tokendyno.backend.plan import LoadPlan
    from tokendyno.backend.worker.patch import kernels as kernel_patch
    from tokendyno.backend.worker.patch.projections import fuse

    fuse(model)
    plan = LoadPlan(
        ModelSource("random"),
        device="cuda",
        kernels="local",
        kernels_path=str(kernel_packages.BUNDLED),
        kernels_rows=model.config.model_type in ("gpt2", "phi3"),
    )
    kernel_patch.apply(model, plan)
    return model


def act(kernels: Any, activation: int, x: Any) -> Any:
    """What a kernel applies for this number."""
    from torch.nn.functional import gelu, relu, silu

    if activation == kernels.description.GELU:
        return gelu(x, approximate="tanh")
    return relu(x).square() if activation == kernels.description.RELU2 else silu(x)


def whole_layers(model: Any) -> list[Any]:
    """Decoder layers that a kernel replaces."""
    kinds = ("DecoderLayer", "Block")
    return [m for m in model.modules() if type(m).__name__.endswith(kinds) and "forward" in vars(m)]


def replaced(model: Any) -> set[str]:
    return {type(m).__name__ for m in model.modules() if "forward" in vars(m)}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(97, 64), (4096, 4096), (40, 11008), (130, 2880), (300, 18944)])
def test_a_product_is_that_of_double_precision(kernels: Any, dtype: str, rows: int, columns: int) -> None:
    """With all fused operations, of dense rows and of int8."""
    import torch

    kind, limit = getattr(torch, dtype), 1e-5 if dtype == "float32" else 1e-2
    torch.manual_seed(rows)
    w = torch.randn(2 * rows, columns, device="cuda", dtype=kind) * 0.05
    codes = torch.randint(-128, 128, w.shape, device="cuda", dtype=torch.int8)
    scales = torch.randn(2 * rows, device="cuda", dtype=kind).abs() / 1e3
    for ride in ("br", "nbr", "nbrg"):
        used = slice(None) if "g" in ride else slice(rows)
        dense = product_error(kernels.products.product, w[used], None, w[used], ride, kind)
        assert dense < limit, (ride, dense)
        plain = codes[used].double() * scales[used].double()[:, None]
        packed = product_error(kernels.products.product, codes[used], scales[used], plain, ride, kind)
        assert packed < max(limit, 2e-4), (ride, packed)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("rows", "columns"), [(97, 64), (2304, 768), (5120, 1280), (6400, 1600)])
def test_a_product_after_a_layer_norm_is_that_of_double_precision(
    kernels: Any, dtype: str, rows: int, columns: int
) -> None:
    """Of one vector, whose mean is far from zero, and of three; activated without a gate, or not at all."""
    import torch

    kind, limit = getattr(torch, dtype), 1e-5 if dtype == "float32" else 1e-2
    torch.manual_seed(rows)

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=kind)

    x, norm, shift = random(3, 1, columns) + 4, random(columns), random(columns)
    w, bias, residual = random(rows, columns) * 0.05, random(rows), random(3, 1, rows)
    normed = torch.nn.functional.layer_norm(x.double(), (columns,), norm.double(), shift.double(), 1e-5)
    assert torch.allclose(kernels.rows.norm(x, norm, 1e-5, shift=shift).double(), normed, rtol=limit, atol=limit)
    for acted, activation in ((False, 0), *((True, number) for number in range(3))):
        expected = normed @ w.double().T + bias.double()
        if acted:
            expected = act(kernels, activation, expected)
        expected += residual.double()
        for how in (None, *kernels.settings.WAYS.values()):
            out = torch.full((rows,), float("nan"), device="cuda", dtype=kind)
            kernels.products.product(
                x[0],
                w,
                out,
                norm=norm,
                shift=shift,
                eps=1e-5,
                bias=bias,
                residual=residual[0],
                acted=acted,
                activation=activation,
                tuned=how,
            )
            error = float((out.double() - expected[0, 0]).norm() / expected[0, 0].norm())
            assert error < limit, (how, acted, activation, error)
        out = kernels.rows.product(normed.to(kind), w, bias=bias, residual=residual, activation=activation, acted=acted)
        assert float((out.double() - expected).norm() / expected.norm()) < limit


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_product_adds_up_its_vector_as_a_kernel_of_its_own_does(kernels: Any, dtype: str) -> None:
    """In the shape of Gemma 3 1B, whose gate and up read what attention added, normalized, to the layer's input."""
    import torch

    torch.manual_seed(1)
    kind = getattr(torch, dtype)
    part, old, norm, after = (torch.randn(1152, device="cuda", dtype=kind) for _ in range(4))
    w = torch.randn(2 * 6912, 1152, device="cuda", dtype=kind) * 0.05
    if not kernels.products.sums(w, None, True):
        pytest.skip("this card's settings are measured, and none of those tried adds up its vector")
    sums = torch.full_like(old, float("nan"))
    out, both = (torch.full((6912,), float("nan"), device="cuda", dtype=kind) for _ in range(2))
    middle = kernels.rows.norm(part, norm, 1e-6, 1.0, old)
    more = {"norm": after, "eps": 1e-6, "gated": True, "activation": kernels.description.GELU, "offset": 1.0}
    kernels.products.product(middle, w, out, **more)
    for _ in range(3):
        kernels.products.product(part, w, both, added=(norm, old, sums), **more)
        assert torch.equal(sums, middle) and torch.equal(both, out)


def test_a_product_that_cannot_add_up_its_vector_says_so(kernels: Any) -> None:
    import torch

    x, w = torch.randn(384, device="cuda"), torch.randn(77, 384, device="cuda")
    assert not kernels.products.sums(w, None, False)
    with pytest.raises(ValueError, match="adds up"):
        kernels.products.product(x, w, torch.empty(77, device="cuda"), added=(x, x, torch.empty_like(x)))


@pytest.mark.parametrize("how", [
    {"BN": 1, "STAGES": 3, "CTAS": 8, "num_warps": 4}, {"BN": 8, "STAGES": 2, "CTAS": 264, "num_warps": 8},
    {"BN": 8, "BK": 128, "STAGES": 4, "AHEAD": 64, "num_warps": 2}, {"ROWS": 2, "num_warps": 4},
])  # fmt: skip
@pytest.mark.usefixtures("early")
def test_a_product_is_the_same_however_it_is_cut(kernels: Any, how: dict[str, int]) -> None:
    import torch

    x, w = torch.randn(384, device="cuda"), torch.randn(77, 384, device="cuda")
    out = torch.full((77,), float("nan"), device="cuda")
    kernels.products.product(x, w, out, tuned=how)
    assert torch.allclose(out.double(), w.double() @ x.double(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("architecture", MODELS)
def test_captured_text_with_the_kernels_is_that_of_generate_without(architecture: str) -> None:
    import torch

    from tests.support.decode_loop import greedy

    plain = build(architecture)
    asked = [prompt(5), prompt(WINDOW), prompt(20)]
    expected = [greedy(plain, one) for one in asked]
    model = with_kernels(build(architecture))
    made = Maker(model, 60)
    for one, text in zip(asked, expected, strict=True):
        assert torch.equal(made(one), text)
    assert len(whole_layers(model)) == (0 if architecture == "gpt_oss" else 4)  # each agreed with the model's own
    assert "Linear" in replaced(model)


def test_a_card_that_nothing_was_swept_on_measures_and_keeps_what_it_found(
    kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from tests.support.decode_loop import greedy

    expected, model, settings = greedy(build("qwen3"), prompt(9)), with_kernels(build("qwen3")), kernels.settings
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(settings, "SWEPT", ())
    monkeypatch.setattr(settings, "CHOSEN", {})
    assert torch.equal(Maker(model, 60)(prompt(9)), expected)
    chosen = dict(settings.CHOSEN)
    assert len(chosen) == 5
    assert all(len(took_us) == len(settings.WAYS) for _, took_us in chosen.values())
    monkeypatch.setattr(settings, "CHOSEN", {})
    monkeypatch.setattr(kernels.settings, "measured", lambda ways, run: pytest.fail("measured again"))
    assert torch.equal(Maker(model, 60)(prompt(9)), expected)
    assert settings.CHOSEN.items() <= chosen.items()  # what the check at warm-up alone asked for is not asked again


@pytest.mark.parametrize(("megabytes", "expected"), [(256, "slower alone"), (1, "faster alone")])
def test_the_ways_of_a_layer_are_chosen_by_its_time_unless_it_stays_in_the_cache(
    kernels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, megabytes: int, expected: str
) -> None:
    """Found again from the folder, without measuring. A way that is far from the fastest alone is not tried."""
    import torch

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    key, alone = ("card", 1, 1, 1, False, "bf16"), {"faster alone": 10.0, "slower alone": 12.0, "far": 20.0}
    weights = {key: torch.empty(megabytes << 20, dtype=torch.uint8, device="cuda")}
    cycles = {"faster alone": 200_000, "slower alone": 20_000, "far": 0}
    for again in (False, True):
        chosen: dict[Any, Any] = {}
        monkeypatch.setattr(kernels.settings, "CHOSEN", chosen)

        def run(chosen: dict[Any, Any] = chosen) -> None:
            chosen.setdefault(key, ("faster alone", alone))
            torch.cuda._sleep(cycles[chosen[key][0]])

        if again:
            monkeypatch.setattr(kernels.settings, "measured", lambda ways, run: pytest.fail("measured again"))
        kernels.settings.settle_layer(weights, dict.fromkeys(alone, 0), run)
        assert chosen == {key: (expected, alone)}


def test_generate_itself_goes_the_models_own_way() -> None:
    import torch

    from tests.support.decode_loop import greedy

    plain, model = build("llama"), with_kernels(build("llama"))
    for one in (prompt(5), prompt(6, 3)):
        assert torch.equal(greedy(model, one), greedy(plain, one))


@pytest.mark.parametrize(
    "architecture",
    ["llama", "mistral", "olmo3", "gemma2", "gemma3_text", "glm4", "granite", "phi3", "smollm3", "gpt2", "minicpm3"],
)
def test_captured_batches_with_the_kernels_have_the_texts_of_generate(
    kernels: Any, architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the window, with padding; every product in the tiles of each way, and in the one that measuring chose, which
    is not measured twice."""
    import torch

    from tests.support.decode_loop import greedy

    plain, model = build(architecture), with_kernels(build(architecture))
    asked = prompt(20, 3, padded=4)
    expected, settings = greedy(plain, asked), kernels.settings
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    settings.CHOSEN.clear()
    assert torch.equal(Maker(model, 60)(asked), expected)
    chosen = dict(settings.CHOSEN)
    assert {key[1] for key in chosen} == {3}
    assert len(chosen) >= 4
    assert all(settings.LIBRARY in took_us and len(took_us) > 1 for _, took_us in chosen.values())
    monkeypatch.setattr(kernels.settings, "measured", lambda ways, run: pytest.fail("measured again"))
    settings.CHOSEN.clear()
    assert torch.equal(Maker(model, 60)(asked), expected)
    assert settings.CHOSEN.items() <= chosen.items()  # what the check at warm-up alone asked for is not asked again
    for way in settings.TILES:
        settings.CHOSEN.update({key: (way, took_us) for key, (_, took_us) in chosen.items() if way in took_us})
        assert torch.equal(Maker(model, 60)(asked), expected), way
    settings.CHOSEN.clear()


@pytest.mark.parametrize("packed", ["", "int8", "float8_e4m3fn"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("count", "rows", "columns"), [(2, 97, 64), (8, 4096, 4096), (17, 40, 11008), (32, 130, 2880)])
def test_products_of_several_rows_are_those_of_double_precision(
    kernels: Any, dtype: str, packed: str, count: int, rows: int, columns: int
) -> None:
    """Dense, and of 8 bits with scales."""
    import torch
    from triton.runtime.errors import OutOfResources

    kind, limit = getattr(torch, dtype), 1e-5 if dtype == "float32" else 1e-2
    torch.manual_seed(rows)

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=kind)

    x, w, bias, scale = random(count, columns), random(2 * rows, columns) * 0.05, random(2 * rows), None
    whole = w.double()
    if packed:
        w, scale = torch.randint(-100, 100, w.shape, device="cuda").to(getattr(torch, packed)), random(2 * rows) / 1e3
        whole = w.double() * scale.double()[:, None]
    for gated, activation in ((False, 0), (True, 0), (True, 1)):
        used = 2 * rows if gated else rows
        expected = x.double() @ whole[:used].T + bias[:used].double()
        if gated:
            first, second = expected.chunk(2, -1)
            expected = act(kernels, activation, first) * second
        residual, of_used = random(count, rows), None if scale is None else scale[:used]
        more = {"residual": residual, "gated": gated, "activation": activation}
        fused = kernels.parts.Fused(scale=of_used, bias=bias[:used], **more)
        expected += residual.double()
        for way, how in kernels.settings.TILES.items():
            try:
                out = kernels.rows.by_tiles(x, w[:used], fused, how)
            except OutOfResources:
                continue  # a multiprocessor holds less: `settings.measured` leaves such a way out too
            error = float((out.double() - expected).norm() / expected.norm())
            assert error < limit, (way, gated, activation, error)


@pytest.mark.parametrize("texts", [1, 3])
def test_int8_of_torchao_is_read_as_it_is(kernels: Any, texts: int) -> None:
    """Compared with torchao's own path for the same int8 weights."""
    import torch
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    from tests.support.decode_loop import greedy

    def packed() -> Any:
        model = build("qwen3")
        quantize_(model.model, Int8WeightOnlyConfig(set_inductor_config=False))
        return model

    kernels.settings.CHOSEN.clear()
    asked = prompt(9, texts)
    assert torch.equal(Maker(with_kernels(packed()), 60)(asked), greedy(packed(), asked))
    eight_bits = [key for key in kernels.settings.CHOSEN if key[-1] == "torch.int8"]
    assert len(eight_bits) == (4 if texts > 1 else 0)


@pytest.mark.parametrize("length", [40, 128, 1000, 3000])
@pytest.mark.parametrize(
    ("group", "size"), [(1, 64), (3, 64), (8, 64), (2, 128), (4, 128), (5, 32), (16, 128), (2, 256)]
)
@pytest.mark.parametrize("angles", ["whole", "halves", "none", "pairs", "part"])
def test_attention_of_one_token_is_that_of_double_precision(
    kernels: Any, length: int, group: int, size: int, angles: str
) -> None:
    """`halves`: as in gpt-oss, with an angle for both halves of a head, and sinks; `none`: not rotated, as in GPT-2;
    `pairs`: as in GLM-4, half of the dimensions with their neighbours; `part`: as in Phi-4-mini, three quarters."""
    import torch

    torch.manual_seed(length)
    heads, slot = 2, torch.tensor([length - 7], device="cuda")

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda")

    keys, values, qkv = (
        random(1, heads, length, size),
        random(1, heads, length, size),
        random((group + 2) * heads * size),
    )
    count = {"halves": size // 2, "pairs": size // 2, "part": 3 * size // 4}.get(angles, size)
    turn = {"pairs": (count, True), "part": (count, False), "none": (0, False)}.get(angles, (size, False))
    cos, sin, q_norm, k_norm = random(count), random(count), random(size), random(size)
    sinks = 3 * random(group * heads) if angles == "halves" else None
    filled = torch.rand(1, length, device="cuda") < 0.6
    filled[0, slot] = True
    given = (None, None) if angles == "none" else (cos, sin)
    for norms, cap in (((None, None), 0.0), ((None, None), 1.5), ((q_norm, k_norm), 0.0))[
        : 2 if angles == "none" else 3
    ]:
        split = (group * heads, heads, heads)
        q, k, v = (part.double().view(-1, size) for part in qkv.split([n * size for n in split]))
        if norms[0] is not None:
            q, k = (
                part * torch.rsqrt(part.pow(2).mean(-1, keepdim=True) + 1e-6) * norm.double()
                for part, norm in zip((q, k), (q_norm, k_norm), strict=True)
            )
        q, k = (rotated(part, cos.double(), sin.double(), *turn) for part in (q, k))
        all_keys, all_values = keys[0].double().clone(), values[0].double().clone()
        all_keys[:, slot], all_values[:, slot] = k[:, None], v[:, None]
        scores = torch.einsum("hgd,htd->hgt", q.view(heads, group, size), all_keys) * size**-0.5
        scores = (cap * torch.tanh(scores / cap) if cap else scores).masked_fill(~filled[0], -torch.inf)
        if sinks is not None:
            scores = torch.cat([scores, sinks.double().view(heads, group, 1)], 2)
        weights = scores.softmax(-1)[..., :length]
        expected = torch.einsum("hgt,htd->hgd", weights, all_values).reshape(-1)
        mine, theirs = keys.clone(), values.clone()
        out = torch.full((group * heads * size,), float("nan"), device="cuda")
        more = {"sinks": sinks, "cap": cap, "rotated": turn[0], "pairs": turn[1]}
        kernels.attention.attend(qkv, *given, mine, theirs, slot, filled, out, size**-0.5, *norms, 1e-6, **more)
        assert float((out.double() - expected).norm() / expected.norm()) < 1e-4
        assert torch.allclose(mine[0, :, slot].double(), k[:, None], atol=1e-4)
        assert torch.equal(mine[0, :, : length - 7], keys[0, :, : length - 7])
        assert torch.allclose(theirs[0, :, slot].double(), v[:, None])


def test_the_folder_is_found_for_a_gpu_and_not_for_a_cpu() -> None:
    assert {"Linear", "DecoderLayer"} <= set(kernel_packages.layers(Path(kernel_packages.BUNDLED), "cuda"))
    assert "DecoderLayer" not in kernel_packages.layers(Path(kernel_packages.BUNDLED), "cpu")
