"""Which models are told that some prompt lengths do not divide into whole groups of a quantized cache."""

from dataclasses import replace

import pytest

from tests.support.machines import CPU, facts
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload


@pytest.mark.parametrize(
    ("kv_heads", "head_dim", "told"), [(2, 32, False), (3, 64, False), (3, 32, True), (1, 8, True)]
)
@pytest.mark.parametrize("cache", ["quantized-hqq4", "quantized-quanto4"])
def test_elements_of_a_token_must_divide_into_groups_of_64(
    cache: str, kv_heads: int, head_dim: int, told: bool
) -> None:
    model = replace(facts("SmolLM2-135M-Instruct"), kv_heads=kv_heads, head_dim=head_dim)
    checked = check(make_config("m", {"cache": cache}), model, CPU, Workload(prompt="x"))
    assert any("in groups of 64" in verdict.reason for verdict in checked.verdicts) is told
    fp8 = check(make_config("m", {"cache": "quantized-fp8"}), model, CPU, Workload(prompt="x"))
    assert not any("groups" in verdict.reason for verdict in fp8.verdicts)
