"""A step is divided among its parts: traces with known answers, and every moment in exactly one part."""

import pytest

from tokendyno.backend.counts import StepPart, StepTime
from tokendyno.backend.worker.prove.step_time import Span, Spans, part_of_name, step_time

US = 1_000  # nanoseconds
EXPERTS = {(8, 64, 192)}


def divided(
    *spans: Span, ends_us: tuple[int, ...] = (0, 100), cuda: bool = False, flex: tuple[str, ...] = ()
) -> StepTime:
    found, why = step_time(Spans(spans), [US * end for end in ends_us], cuda, EXPERTS, flex)
    assert found is not None, why
    assert sum(found.parts_s.values()) == pytest.approx(found.seconds)
    return found


def parts_us(step: StepTime) -> dict[StepPart, float]:
    """Microseconds of the parts that took any."""
    return {part: round(1e6 * seconds, 3) for part, seconds in step.parts_s.items() if seconds}


def op(name: str, begin_us: int, end_us: int, *shapes: tuple[int, ...], number: int = 0) -> Span:
    return Span(name, US * begin_us, US * end_us, shapes=shapes, id=number)


# --- on a CPU -------------------------------------------------------------------------------------


def test_each_moment_belongs_to_the_operator_that_runs_and_to_the_host_between_them() -> None:
    found = divided(
        op("aten::linear", -10, 10),
        op("aten::mm", 1, 9),  # begins in the prefill
        op("aten::add", 20, 30),
        op("aten::empty", 22, 24),
        op("aten::scaled_dot_product_attention", 40, 70),
        op("aten::bmm", 45, 50, (1, 4, 8), (1, 8, 4)),
        op("aten::clone", 60, 65),
        op("tokendyno: a range of its own", 80, 99),
        op("c10d::allreduce_", 90, 95),
        op("aten::mul", 99, 120),
    )
    assert parts_us(found) == {"products": 10, "other": 11, "attention": 30, "collectives": 5, "host": 44}
    assert {name: round(1e6 * took) for name, took in found.others.items()} == {"aten::add": 10, "aten::mul": 1}
    assert not found.gpu and found.steps == 1


@pytest.mark.parametrize(
    ("name", "shapes", "part"),
    [
        ("aten::matmul", ((1, 6, 1, 32), (1, 6, 32, 40)), "attention"),
        ("aten::bmm", ((6, 1, 40), (6, 40, 32)), "attention"),
        ("aten::bmm", ((2, 1, 64), (2, 64, 192)), "products"),  # experts
        ("aten::bmm", ((2, 1, 192), (2, 192, 64)), "products"),
        ("aten::matmul", ((1, 1, 192), (192, 64)), "products"),
        ("aten::matmul", ((1, 16, 1), (1, 1, 1)), "other"),  # rotary angles
        ("aten::softmax", ((1, 6, 1, 41), ()), "attention"),
        ("aten::softmax", ((1, 8), ()), "other"),  # a router's
        ("aten::index", ((8, 64, 192), ()), "products"),  # an expert's weights are copied
        ("aten::index", ((1, 192), ()), "other"),
        ("aten::_weight_int8pack_mm", (), "products"),
        ("flash_attn::_flash_attn_forward", (), "attention"),
        ("aten::clamp", (), "other"),
        ("c10d::allreduce_", (), "collectives"),
    ],
)
def test_an_operator_is_told_by_its_name_and_the_shapes_of_its_inputs(
    name: str, shapes: tuple[tuple[int, ...], ...], part: str
) -> None:
    assert parts_us(divided(op(name, 10, 40, *shapes))) == {part: 30, "host": 70}


# --- on a GPU -------------------------------------------------------------------------------------


def kernel(name: str, begin_us: int, end_us: int, launch: int = 0, link: int = 0) -> Span:
    return Span(name, US * begin_us, US * end_us, True, id=launch, link=link)


def launch(number: int, begin_us: int, end_us: int) -> Span:
    return op("cudaLaunchKernel", begin_us, end_us, number=number)


def test_the_gpu_works_waits_for_a_launch_or_has_a_gap_between_kernels() -> None:
    found = divided(
        kernel("prefill", -30, 10, 1),
        launch(1, -40, -38),
        launch(2, 2, 4),
        kernel("ampere_bf16_gemm", 12, 30, 2),  # was launched before the prefill's last kernel ended
        launch(3, 40, 45),
        kernel("flash_fwd_kernel", 47, 60, 3),  # the GPU waited from 30 to 45
        launch(4, 50, 52),
        kernel("vectorized_elementwise", 58, 80, 4),  # overlaps the one before it
        launch(5, 61, 62),
        kernel("ncclDevKernel_AllReduce", 80, 90, 5),
        launch(6, 101, 102),
        kernel("of the next step", 103, 200, 6),
        cuda=True,
    )
    assert parts_us(found) == {
        "products": 18,
        "attention": 13,
        "other": 20,
        "collectives": 10,
        "gaps": 2 + 2,
        "host": 15,
    }
    assert found.gpu and found.seconds == pytest.approx(80e-6), "from the end of the prefill's last kernel"


def test_a_kernel_belongs_to_the_operator_that_launched_it() -> None:
    """Eager attention multiplies with the same kernels as the projections do."""
    eager = op("aten::bmm", 10, 20, (6, 1, 32), (6, 32, 40), number=50)
    linear, inner = op("aten::linear", 30, 50, number=51), op("aten::copy_", 32, 36, number=52)
    runtime = op("cudaLaunchKernel", 12, 13, number=51)  # its numbers are not those of operators
    found = divided(
        eager,
        linear,
        inner,
        runtime,
        kernel("gemv2T_kernel", 15, 25, 51, 50),
        launch(61, 33, 34),
        kernel("elementwise_kernel", 40, 44, 61, 52),
        cuda=True,
    )
    assert parts_us(found) == {"attention": 10, "products": 4, "host": 9, "gaps": 6}
    none, why = step_time(Spans([eager, linear]), [0, 100 * US], True, EXPERTS)
    assert none is None and "no kernel" in why


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<...>>>", "attention"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "attention"),
        ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "products"),
        ("void gemv2T_kernel_val<int, __nv_bfloat16>", "products"),
        ("triton_tem_fused_addmm_3", "products"),
        ("triton_red_fused_mm_0", "products"),
        ("triton_poi_fused_add_mul_silu_1", "other"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "collectives"),
        ("Memcpy DtoH (Device -> Pinned)", "other"),
        ("splitKreduce_kernel", "products"),
        ("tokendyno_nibble_product", "products"),
        ("rms_norm_kernel_early", "other"),
        ("tokendyno_attention_whole", "attention"),
        ("tokendyno_delta_rule", "attention"),
        ("tokendyno_absorb", "attention"),
        ("tokendyno_latents_whole", "attention"),
        ("communicate_summary", "other"),
    ],
)
def test_a_kernel_of_a_graph_is_told_by_its_name(name: str, part: str) -> None:
    assert part_of_name(name) == part
