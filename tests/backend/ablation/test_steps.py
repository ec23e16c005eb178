"""Which arms an ablation runs, and what each is compared with."""

import pytest

from tokendyno.backend.ablation.steps import plan_steps
from tokendyno.backend.ablation.trials import order
from tokendyno.backend.errors import InputError

CHANGES = [("cache", "static"), ("loop", "own"), ("dtype", "float32")]


def test_each_kind_of_step_and_what_it_is_compared_with() -> None:
    steps = plan_steps("pocket", {"attention": "sdpa"}, CHANGES, ("alone", "without", "stair"))
    kinds = [(step.kind, step.change, step.against) for step in steps]
    assert kinds == [
        ("base", "", 0),
        ("alone", "cache=static", 0),
        ("alone", "loop=own", 0),
        ("alone", "dtype=float32", 0),
        ("all", "", 0),
        ("without", "cache=static", 4),
        ("without", "loop=own", 4),
        ("without", "dtype=float32", 4),
        ("stair", "cache=static", 0),
        ("stair", "loop=own", 8),
        ("stair", "dtype=float32", 9),
    ]
    assert steps[0].arm == "attention=sdpa"
    assert steps[1].arm == steps[8].arm == "attention=sdpa,cache=static", "one arm in two roles"
    assert steps[6].choices == {"attention": "sdpa", "cache": "static", "dtype": "float32"}
    assert steps[10].choices == steps[4].choices == {"attention": "sdpa"} | dict(CHANGES)


def test_a_change_back_to_the_default_leaves_the_choice_out() -> None:
    base = {"cache": "static"}
    assert plan_steps("pocket", base, [("cache", "dynamic")], ("alone",))[1].choices == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([], "1 to 12 changes, not 0"),
        ([("cache", "static"), ("cache", "offloaded")], "cache is changed twice"),
        ([("cache", "dynamic")], "cache=dynamic changes nothing"),
        ([("cash", "static")], "cache"),
    ],
)
def test_bad_input_is_a_sentence(changes: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(InputError, match=said):
        plan_steps("pocket", {}, changes, ("alone",))


def test_over_the_rounds_each_arm_is_early_as_often_as_late() -> None:
    arms = ["a", "b", "c", "d"]
    rounds = [order(arms, number) for number in range(8)]
    assert all(sorted(order_of_round) == arms for order_of_round in rounds)
    places = {arm: sum(order_of_round.index(arm) for order_of_round in rounds) for arm in arms}
    assert set(places.values()) == {12}
