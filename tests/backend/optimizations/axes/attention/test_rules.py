"""When each implementation of attention can run, against what transformers says and does."""

from dataclasses import replace

import pytest

from tests.support.attention import ALLOWED, BARE, OFFLINE, REFUSALS, gpu, refused, verdicts
from tests.support.machines import H200, facts
from tests.support.tiny_models import tiny
from tokendyno.backend.optimizations.axes.attention import FA2, FA3, FA4, HUB_FA2, HUB_FA3

# --- as transformers refuses ----------------------------------------------------------------------


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(("architecture", "name", "model", "words"), REFUSALS, ids=[f"{r[0]}-{r[1]}" for r in REFUSALS])
def test_what_the_rules_do_not_let_through_is_refused_by_transformers(
    architecture: str, name: str, model: str, words: str
) -> None:
    assert words in refused(architecture, name)
    assert {"blocked", "fallback"} & set(verdicts(name, facts(model)))


@pytest.mark.parametrize(("architecture", "name"), ALLOWED)
def test_what_the_rules_let_through_is_not_refused(architecture: str, name: str) -> None:
    assert refused(architecture, name) == ""
    known = replace(facts("random:Qwen3-0.6B"), architecture=architecture)
    assert "blocked" not in verdicts(name, known)


# --- rules that only a GPU can probe ---------------------------------------------------------------


CAPABILITIES = [
    (FA2, (8, 0), True), (FA2, (10, 0), True), (HUB_FA2, (8, 6), True),
    (FA3, (8, 0), False), (FA3, (9, 0), True), (FA3, (10, 0), False), (HUB_FA3, (8, 9), False), (HUB_FA3, (9, 0), True),
    (FA4, (8, 9), False), (FA4, (9, 0), True), (FA4, (10, 0), True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "capability", "runs"), CAPABILITIES)
def test_capability_decides_for_what_would_be_taken(name: str, capability: tuple[int, int], runs: bool) -> None:
    """Without packages: FlashAttention 3 is the Hub's kernel for Hopper then."""
    assert ("blocked" not in verdicts(name, machine=gpu(*capability))) is runs


@pytest.mark.parametrize(("name", "instead"), [(FA2, HUB_FA2), (FA3, HUB_FA3)])
def test_a_missing_package_is_amber_online_and_refused_offline_unless_the_kernel_is_here(
    name: str, instead: str
) -> None:
    assert instead in verdicts(name, machine=BARE)["fallback"]
    assert "fallback" not in verdicts(name, machine=H200)
    assert f"LOCAL_KERNELS={instead}" in verdicts(name, machine=OFFLINE)["blocked"]
    here = replace(OFFLINE, hub_kernels=(instead,))
    assert "blocked" not in verdicts(name, machine=here) and instead in verdicts(name, machine=here)["fallback"]


@pytest.mark.parametrize("name", [FA2, FA3, HUB_FA2])
def test_with_sinks_the_one_kernel_that_knows_them_is_taken(name: str) -> None:
    sinks = facts("random:gpt-oss-20b")
    assert HUB_FA3 in verdicts(name, sinks, H200)["fallback"]
    assert HUB_FA3 in verdicts(name, sinks, OFFLINE)["blocked"]
    assert "blocked" in verdicts(name, sinks, gpu(8, 0, H200))
    model = tiny("gpt_oss")
    kept = model._compatible_flash_implementations
    assert name not in kept and {HUB_FA3, FA4} <= set(kept)
