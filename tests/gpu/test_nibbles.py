"""The kernel for bitsandbytes' 4-bit weights multiplies with the numbers that bitsandbytes dequantizes."""

from typing import Any

import msgspec
import pytest

from tests.gpu.test_matvec import replaced, with_kernels
from tests.gpu.test_own import MANUAL, Maker, prompt
from tests.support.fused_products import product_error
from tests.support.whole_layers import SHAPE

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

KINDS = [("nf4", False), ("nf4", True), ("fp4", False), ("fp4", True)]
WIDE = SHAPE | {"hidden_size": 1024, "intermediate_size": 1088, "head_dim": 128, "num_hidden_layers": 2}
CUTS = [
    {"num_warps": 8, "CTAS": 1 << 30, "DEPTH": 1},
    {"num_warps": 2, "CTAS": 3, "DEPTH": 4},
    {"num_warps": 4, "CTAS": 3, "DEPTH": 2},
    {"num_warps": 16, "CTAS": 2, "DEPTH": 4},
    {"num_warps": 1, "CTAS": 5, "DEPTH": 8},
]


def linear(rows: int, columns: int, kind: str, double: bool, dtype: Any) -> Any:
    import torch
    from bitsandbytes.nn import Linear4bit, Params4bit

    made = Linear4bit(columns, rows, False, dtype, double, kind)
    numbers = torch.randn(rows, columns, dtype=dtype) * 0.05
    made.weight = Params4bit(numbers, requires_grad=False, compress_statistics=double, quant_type=kind)
    return made.cuda()


def read(kernels: Any, part: Any) -> tuple[Any, Any, Any]:
    """What the kernel reads, and (rows, columns) as bitsandbytes dequantizes it."""
    from bitsandbytes.functional import dequantize_4bit

    from tokendyno.backend.worker.patch.quantized import lay_together

    plain = dequantize_4bit(part.weight.data, part.weight.quant_state)
    lay_together(part.weight.quant_state)
    return *kernels.nibbles.matrix(part.weight), plain


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize(("kind", "double"), KINDS)
def test_a_unit_vector_gives_the_numbers_of_bitsandbytes(
    kernels: Any,
    kind: str,
    double: bool,
    dtype: str,
) -> None:
    """Within the rounding of the dtype, every column; of joined rows too, whose scales have an offset for each part."""
    import torch

    from tokendyno.backend.worker.patch.quantized import Joined4bit, lay_together

    torch.manual_seed(0)
    made = getattr(torch, dtype)
    read_parts = [linear(rows, 1088, kind, double, made) for rows in (1024, 256, 256)]
    expected = torch.cat([read(kernels, part)[2] for part in read_parts])
    joined = Joined4bit(read_parts)
    lay_together(joined.weight.quant_state)
    cases = [(*kernels.nibbles.matrix(joined.weight), expected), read(kernels, linear(200, 1088, kind, double, made))]
    for packed, scale, plain in cases:
        for how in CUTS[:2]:
            ours = torch.full((1088, packed.shape[0]), float("nan"), device="cuda", dtype=made)
            for column, one in enumerate(torch.eye(1088, device="cuda", dtype=made)):
                kernels.nibbles.product(one, packed, ours[column], scale=scale, tuned=how)
            torch.testing.assert_close(ours.T, plain, rtol=4 * torch.finfo(made).eps, atol=0)


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(6144, 4096), (28672, 4096), (4096, 14336), (4096, 1024), (1024, 3072), (80, 1152), (34, 64), (5120, 8192)],
)
def test_a_product_is_that_of_double_precision(kernels: Any, rows: int, columns: int) -> None:
    import torch

    torch.manual_seed(rows)
    for kind, double, dtype in (("nf4", False, torch.bfloat16), ("fp4", True, torch.float16)):
        made = read(kernels, linear(rows, columns, kind, double, dtype))
        for ride in ("", "nbr", "nbrg"):
            found = product_error(kernels.nibbles.product, *made, ride, dtype, offset=1.0 if ride == "nbr" else 0.0)
            assert found < 1e-2, (kind, ride, found)


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.usefixtures("early")
def test_a_product_is_the_same_however_it_is_cut(kernels: Any, how: dict[str, int]) -> None:
    import torch

    made = read(kernels, linear(144, 1088, "nf4", True, torch.bfloat16))
    for ride in ("", "nbr", "nbrg"):
        assert product_error(kernels.nibbles.product, *made, ride, torch.bfloat16, tuned=how) < 1e-2


def test_other_blocks_and_scales_elsewhere_are_left_to_bitsandbytes(kernels: Any) -> None:
    import torch

    from tokendyno.backend.worker.patch.quantized import lay_together

    whole = linear(64, 128, "nf4", False, torch.bfloat16)
    assert kernels.nibbles.matrix(whole.weight) is None  # its scales lie anywhere
    lay_together(whole.weight.quant_state)
    assert kernels.layers.ops.matrix(whole.weight) is not None
    for rows, columns, dtype in ((64, 96, torch.bfloat16), (64, 128, torch.float32), (64, 16448, torch.bfloat16)):
        part = linear(rows, columns, "nf4", False, dtype)
        lay_together(part.weight.quant_state)
        assert kernels.nibbles.matrix(part.weight) is None, (rows, columns, dtype)


def assert_text_by(kernel: str, model: Any, plain: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The captured text (1, T) of a model whose products go through this module of the kernels, each token of which
    `plain` finds the likeliest, or as likely within the rounding of bfloat16."""
    import torch

    module = getattr(model.model.layers[0].forward.__func__.__globals__["ops"], kernel)
    calls, product = list[int](), module.product

    def counted(*args: Any, **more: Any) -> None:
        calls.append(1)
        product(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(module, "product", counted)
        text = Maker(model, 60)(prompt(9))
    assert len(calls) >= 4 * model.config.num_hidden_layers
    with torch.inference_mode():
        logits = plain(text).logits[0, 8:-1].float()
    behind = logits.amax(-1) - logits.gather(-1, text[0, 9:, None])[:, 0]
    assert bool((behind <= 0.1 * logits.std(-1)).all()), behind
    return text


@pytest.mark.parametrize(("kind", "double"), KINDS)
@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_a_fused_model_says_what_it_says_through_bitsandbytes(
    architecture: str, kind: str, double: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captured, in whole layers: the text of the same loop uncaptured, and each token is bitsandbytes' most likely one
    too, or as likely within the rounding of bfloat16."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, BitsAndBytesConfig, GenerationConfig

    torch.manual_seed(0)
    config = AutoConfig.for_model(architecture, **WIDE)
    dense = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    settings = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=kind,
        bnb_4bit_use_double_quant=double,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )

    def made() -> Any:
        model = (
            type(dense)
            .from_pretrained(
                None,
                config=config,
                state_dict=dense.state_dict(),
                quantization_config=settings,
                dtype=torch.bfloat16,
                device_map="cuda",
            )
            .eval()
        )
        model.generation_config = GenerationConfig(pad_token_id=0)
        return model

    plain, model = made(), with_kernels(made())
    assert {"llama": "LlamaDecoderLayer", "qwen3": "Qwen3DecoderLayer"}[architecture] in replaced(model)
    ours = assert_text_by("nibbles", model, plain, monkeypatch)
    assert torch.equal(ours, Maker(model, 60, msgspec.structs.replace(MANUAL, cuda_graphs="off"))(prompt(9)))
