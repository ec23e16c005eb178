"""The GPU catalogue: read strictly, found by any spelling, never guessed."""

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware.gpu_specs import find_by_nvml_name, find_gpu, gpus


def test_every_card_is_plausible_and_has_its_source() -> None:
    assert len(gpus()) >= 20
    for spec in gpus():
        assert 2**33 < spec.memory_bytes < 2**39, spec.name
        assert 1e11 < spec.bandwidth_bytes_per_s < 1e13, spec.name
        assert (7, 0) <= spec.capability <= (12, 1), spec.name
        assert spec.source.startswith("https://"), spec.name
        assert spec.nvml or "same name" in spec.source, spec.name
        rates = spec.flops_per_s
        assert rates.get("bfloat16", 0) == 0 or rates["bfloat16"] == rates["float16"]
        assert rates.get("float8_e4m3fn", 1e30) >= rates.get("float16", 0) >= rates.get("float32", 0) or not rates.get(
            "float16"
        )
        assert "bfloat16" not in rates or spec.capability >= (8, 0), "tensor cores know it from Ampere on"
        assert "float8_e4m3fn" not in rates or spec.capability >= (8, 9), "and fp8 from Ada on"


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("H200-SXM", "H200-SXM"),
        ("nvidia h200", "H200-SXM"),
        ("h200 sxm", "H200-SXM"),
        ("RTX 4090", "RTX-4090"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("t4", "T4"),
        ("Tesla T4", "T4"),
        ("GB10", "DGX-Spark"),
    ],
)
def test_a_card_is_found_by_any_spelling(written: str, name: str) -> None:
    assert find_gpu(written).name == name


def test_a_very_long_name_is_not_repeated_whole() -> None:
    with pytest.raises(InputError, match=r"has no GPU 'x{64}\.\.\. \(50,000 characters\)'"):
        find_gpu("x" * 50_000)


@pytest.mark.parametrize(
    ("written", "near"),
    [
        ("H100", ("H100-SXM", "H100-NVL", "H100-PCIe")),
        ("H100 80GB", ("H100-SXM", "H100-NVL", "H100-PCIe")),
        ("A100", ("A100-SXM-80GB", "A100-PCIe-80GB")),
        ("RTX 4060 Ti", ("RTX-4060-Ti-16GB",)),
    ],
)
def test_an_unknown_card_is_refused_with_the_nearest_names(written: str, near: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        find_gpu(written)
    hint = str(caught.value).partition("Did you mean ")[2].partition("?")[0]
    assert all(name in hint for name in near)
    assert "--vram" in str(caught.value)


def test_this_machines_card_is_recognised_by_its_whole_name_only() -> None:
    h200, nvl = find_by_nvml_name("NVIDIA H200"), find_by_nvml_name("NVIDIA H200 NVL")
    assert h200 is not None and nvl is not None and (h200.name, nvl.name) == ("H200-SXM", "H200-NVL")
    assert (
        find_by_nvml_name("NVIDIA H20") is None
        and find_by_nvml_name("NVIDIA H200 something") is None
        and find_by_nvml_name("") is None
    )
