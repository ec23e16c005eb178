"""The README's way to use the kernels in transformers without tokendyno, by `use_kernels`."""

import pytest

from tests.presets.kernels.test_plain_transformers import EXAMPLES, error, kernels_in, model_of
from tokendyno.backend.paths import ROOT

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]


def test_norm_and_matrices_by_use_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.nn import Linear

    for name in ("kernel_layer_name", "kernel_condition"):  # set by the example, taken back after the test
        monkeypatch.setattr(Linear, name, None, raising=False)
    monkeypatch.chdir(ROOT)
    model = model_of(EXAMPLES[1])
    assert kernels_in(model) == {("GptOssRMSNorm", "tokendyno_rmsnorm_cuda_1"), ("Linear", "tokendyno_matvec_cuda_1")}
    assert error(model) < 0.02
