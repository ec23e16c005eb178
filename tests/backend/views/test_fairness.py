"""What stands above the button: in what two arms differ, and what makes them the same in what nobody chose."""

from collections.abc import Mapping, Sequence

import pytest

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import Machine
from tokendyno.backend.views.fairness import IDENTICAL, SAME_PLAN, Changes, Fairness, fairness

Choices = Mapping[str, str]
COMPILED = {"cache": "static", "compile": "default"}


def between(
    a: Choices, b: Choices, machine: Machine = CPU, model: str = "pocket", kept: Sequence[str] = ()
) -> Fairness | None:
    def checked(changes: Changes) -> dict[str, Checked]:
        return {
            name: check(
                make_config(model, {**choices, **changes.get(name, {})}), facts(model), machine, Workload("Once")
            )
            for name, choices in (("A", a), ("B", b))
        }

    return fairness(checked({}), facts(model), checked, kept)


@pytest.mark.parametrize(
    ("a", "b", "machine", "says"),
    [
        ({"dtype": "bfloat16"}, {"dtype": "float32"}, CPU, "dtype alone"),
        ({}, {"dtype": "float32"}, CPU, "dtype alone"),  # left at auto, but it is what is compared
        ({}, COMPILED, CPU, "KV cache and torch.compile, as chosen"),
        # CUDA graphs follow from the mode, and cannot be had or left alone
        ({}, COMPILED | {"compile": "reduce-overhead"}, H200, "KV cache, torch.compile, and CUDA graphs, as chosen"),
    ],
)
def test_what_was_chosen_is_fair(a: Choices, b: Choices, machine: Machine, says: str) -> None:
    verdict = between(a, b, machine)
    assert verdict is not None and (verdict.state, verdict.fix) == ("fair", {})
    assert verdict.sentence == f"They differ in {says}."


@pytest.mark.parametrize(
    ("a", "b", "said", "fix"),
    [
        ({"dtype": "float32"}, COMPILED, "dtype (A float32, B bfloat16 by auto)", {"B": {"dtype": "float32"}}),
        (COMPILED, {"dtype": "float32"}, "dtype (A bfloat16 by auto, B float32)", {"A": {"dtype": "float32"}}),
    ],
)
def test_what_nobody_chose_is_said_and_set_to_what_was_named(a: Choices, b: Choices, said: str, fix: Changes) -> None:
    verdict = between(a, b)
    assert verdict is not None and verdict.state == "unasked" and said in verdict.sentence and verdict.fix == fix
    mended = between({**a, **fix.get("A", {})}, {**b, **fix.get("B", {})})
    assert mended is not None and mended.state == "fair"


def test_equal_arms_and_arms_that_cannot_run() -> None:
    assert between({}, {}) == Fairness("equal", "", IDENTICAL)
    assert between({}, {"dtype": "bfloat16"}) == Fairness("equal", "", SAME_PLAN)
    assert between({}, {"attention": "flash_attention_2"}) is None


def test_what_is_the_same_and_where_workers_come_from() -> None:
    one_kept, both = between({}, COMPILED, kept=["A"]), between({}, COMPILED, kept=["A", "B"])
    assert one_kept is not None and both is not None
    assert "dtype bfloat16" in both.same and both.same.endswith("prompt and length")
    assert one_kept.same == f"{both.same}. A keeps its worker of an earlier run, B gets a new one"
