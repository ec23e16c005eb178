"""Products with 8- and 4-bit weights on tensor cores are those of double precision, however they are cut."""

from typing import Any

import pytest

from tests.gpu.test_tiles import packed
from tests.support.fused_products import product_error

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

ONCE = 1 << 30
CUTS = [
    {"CHUNKS": 8, "DEPTH": 1, "CTAS": ONCE, "num_warps": 4},
    {"CHUNKS": 2, "DEPTH": 2, "CTAS": ONCE, "num_warps": 8},
    {"CHUNKS": 1, "DEPTH": 3, "CTAS": 2, "num_warps": 8},
    {"CHUNKS": 2, "DEPTH": 4, "CTAS": 3, "num_warps": 4},
]
RIDES = ("", "n", "nbr", "nbrg")


def weights(kind: str, rows: int, columns: int) -> tuple[Any, Any]:
    """Random rows and a scale each; of floats every value that there is but for NaN."""
    import torch

    whole = torch.randint(-128, 128, (rows, columns), device="cuda", dtype=torch.int8)
    scale = torch.rand(rows, device="cuda", dtype=torch.float32) / 1e3
    if kind == "fp8":
        whole = torch.where((whole & 127) == 127, 0, whole).view(torch.float8_e4m3fn)
    return whole, scale


def error_of_rows(kernels: Any, kind: str, rows: int, columns: int, ride: str, **more: Any) -> float:
    import torch

    w, scale = weights(kind, 2 * rows if "g" in ride else rows, columns)
    plain = w.float().double() * scale.double()[:, None]
    return product_error(kernels.products.product, w, scale, plain, ride, torch.float32, 300, **more)


@pytest.mark.parametrize("kind", ["int8", "fp8"])
@pytest.mark.parametrize("how", CUTS)
@pytest.mark.usefixtures("early")
def test_rows_are_multiplied_however_they_are_cut(kernels: Any, kind: str, how: dict[str, int]) -> None:
    import torch

    torch.manual_seed(0)
    for rows, columns, ride in ((100, 4096, ""), (37, 4096, "nbr"), (64, 4096, "nbrg"), (33, 14336, "nbr")):
        cut = how if columns == 4096 else how | {"CHUNKS": min(how["CHUNKS"], 2)}
        found = error_of_rows(kernels, kind, rows, columns, ride, tuned=cut)
        assert found < 2e-5, (rows, columns, ride, found)


@pytest.mark.parametrize("kind", ["int8", "fp8"])
@pytest.mark.parametrize(
    ("rows", "columns"), [(6144, 4096), (4096, 4096), (14336, 4096), (4096, 14336), (97, 64), (40, 11008), (1024, 3072)]
)
def test_rows_are_multiplied_as_they_are_cut_here(kernels: Any, kind: str, rows: int, columns: int) -> None:
    import torch

    torch.manual_seed(rows)
    for ride in RIDES:  # gated rows that are long take twice the shared memory
        assert error_of_rows(kernels, kind, rows, columns, ride) < 2e-4, ride


def test_other_cards_choose_from_what_multiplies_a_matrix(kernels: Any) -> None:
    import torch

    def ways(dtype: torch.dtype, columns: int) -> set[str]:
        return set(kernels.settings.ways(torch.empty(1, columns, dtype=dtype)))

    every, cores = set(kernels.settings.WAYS), set(kernels.settings.CORE_WAYS)
    assert ways(torch.bfloat16, 4096) == every
    assert ways(torch.int8, 4096) == every | cores
    assert ways(torch.int8, 96) == every
    assert ways(torch.float8_e4m3fn, 4096) == cores | {way for way in every if way.startswith("tiles")}


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.usefixtures("early")
def test_tiles_are_multiplied_however_they_are_cut(kernels: Any, how: dict[str, int]) -> None:
    import torch

    torch.manual_seed(0)
    for columns in (4096, 14336):
        tiles, scales, plain = packed(144, columns)
        most = 2 if columns == 14336 or how["num_warps"] == 8 else 4
        cut = how | {"CHUNKS": min(how["CHUNKS"], most if columns == 4096 else 1)}
        for ride in RIDES:
            found = product_error(kernels.tiles.product, tiles, scales, plain, ride, torch.float32, tuned=cut)
            assert found < 2e-5, ride


def test_a_cut_that_does_not_fit_is_an_error(kernels: Any) -> None:
    with pytest.raises(ValueError, match="4096"):
        error_of_rows(kernels, "int8", 32, 4096, "", tuned=CUTS[0] | {"CHUNKS": 3})
