"""A worker that no plan asks for torchao or hqq does not import them, and one that is asked for them has them."""

import subprocess
import sys

import pytest

pytest.importorskip("torchao")
pytest.importorskip("hqq")

START = """
import sys
import tokendyno.backend.worker.serve
loaded = [name for name in ("torchao", "hqq", "optimum.quanto", "bitsandbytes") if name in sys.modules]
assert loaded == [], loaded
from transformers import cache_utils
from transformers.quantizers import quantizer_torchao
from transformers.utils import is_hqq_available, is_torchao_available
assert is_hqq_available() and is_torchao_available()
"""
HQQ = """
import torch
from transformers import LlamaConfig
from transformers.cache_utils import QuantizedCache
config = LlamaConfig(hidden_size=64, num_attention_heads=1, num_hidden_layers=1)
cache = QuantizedCache("hqq", config, nbits=4, axis_key=1, axis_value=1, q_group_size=64, residual_length=1)
keys = torch.randn(1, 1, 2, 64)
cache.update(keys, keys, 0)
found, _ = cache.update(keys, keys, 0)
assert (found[:, :, :2] - keys).abs().max() < 1
assert "hqq" in sys.modules and "torchao" not in sys.modules
"""
TORCHAO = """
from tokendyno.backend.models import resolve
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.load.random_checkpoint import load_as_checkpoint
from tokendyno.backend.worker.load.device import Observed
from tokendyno.backend.optimizations.axes.quantization.axis import _kind
model = load_as_checkpoint(LoadPlan(resolve("random:pocket").source, quantization="torchao-int8"), Observed())
assert _kind(model.model.layers[0].self_attn.q_proj.weight) == "torchao-int8"
assert callable(quantizer_torchao.flatten_tensor_state_dict)
flat, _ = quantizer_torchao.flatten_tensor_state_dict(model.state_dict())
"""


@pytest.mark.slow
def test_a_package_comes_when_it_is_used() -> None:
    code = START + HQQ + TORCHAO
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.full
def test_a_package_that_is_not_there_stays_away() -> None:
    """The stand-in is put in for what is installed only."""
    hidden = "import sys\nsys.modules['hqq'] = None\n"
    check = "from transformers import cache_utils\nassert not hasattr(cache_utils, 'HQQQuantizer')\n"
    code = hidden + "import tokendyno.backend.worker.serve\n" + check
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
