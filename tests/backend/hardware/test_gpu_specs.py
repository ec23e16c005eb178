"""The GPU catalogue: read strictly, found by any spelling, never guessed."""

from pathlib import Path

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware.gpu_specs import find_by_nvml_name, find_gpu, gpus, read_gpus

ENTRY = """
[[gpu]]
name = "X1"
nvml = ["NVIDIA X1"]
memory_mib = 1024
bandwidth_gb_per_s = 100
capability = "9.0"
source = "https://example.com"
"""


def test_every_card_is_plausible_and_has_its_source() -> None:
    assert len(gpus()) >= 20
    for spec in gpus():
        assert 2**33 < spec.memory_bytes < 2**38, spec.name
        assert 1e11 < spec.bandwidth_bytes_per_s < 1e13, spec.name
        assert (7, 0) <= spec.capability <= (12, 0), spec.name
        assert spec.source.startswith("https://") and spec.nvml, spec.name
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
        ("A100", ("A100-SXM-80GB", "A100-PCIe-80GB")),
        ("RTX 4080", ("RTX-4090",)),
    ],
)
def test_an_unknown_card_is_refused_with_the_nearest_names(written: str, near: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        find_gpu(written)
    hint = str(caught.value).partition("Did you mean ")[2].partition("?")[0]
    assert all(name in hint for name in near)
    assert "--vram" in str(caught.value) and "doctor --bandwidth" in str(caught.value)


def test_nothing_like_a_card_gets_no_hint() -> None:
    with pytest.raises(InputError) as caught:
        find_gpu("<script>")
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "dtype", "flops"),
    [
        ("RTX-4090", "float16", 165.2e12),
        ("RTX-4090", "float8_e4m3fn", 330.3e12),
        ("RTX-5090", "bfloat16", 209.5e12),
        ("RTX-3090", "float16", 71e12),
        ("H100-SXM", "bfloat16", 989.4e12),
        ("H200-NVL", "bfloat16", 835.5e12),
        ("A100-SXM-80GB", "int8", 624e12),
        ("L4", "bfloat16", 121e12),
    ],
)
def test_rates_are_dense_and_of_sums_in_float32(name: str, dtype: str, flops: float) -> None:
    """As in white papers. Marketing gives sparse rates, and GeForce rates with float16 accumulation, twice as large."""
    assert find_gpu(name).flops_per_s[dtype] == pytest.approx(flops)


def test_this_machines_card_is_recognised_by_its_whole_name_only() -> None:
    h200, nvl = find_by_nvml_name("NVIDIA H200"), find_by_nvml_name("NVIDIA H200 NVL")
    assert h200 is not None and nvl is not None and (h200.name, nvl.name) == ("H200-SXM", "H200-NVL")
    assert (
        find_by_nvml_name("NVIDIA H20") is None
        and find_by_nvml_name("NVIDIA H200 something") is None
        and find_by_nvml_name("") is None
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (ENTRY.replace("memory_mib", "memory"), "memory"),
        (ENTRY + "rate = 1\n", "rate"),
        (ENTRY.replace('"9.0"', '"nine"'), "capability"),
        (ENTRY.replace("1024", "0"), "memory_mib"),
        (ENTRY.replace("https://example.com", "a brochure"), "source"),
        (ENTRY + ENTRY, "twice"),
        ("[[gpu]", "TOML"),
        (ENTRY.replace("bandwidth_gb_per_s = 100\n", ""), "bandwidth_gb_per_s"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "gpus.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=r"gpus\.toml") as caught:
        read_gpus(file)
    assert problem in str(caught.value) or problem == "TOML"
    file.write_text(ENTRY)
    (spec,) = read_gpus(file)
    assert spec.flops_per_s == {} and spec.memory_bytes == 1 << 30


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="reinstall"):
        read_gpus(tmp_path / "none.toml")
