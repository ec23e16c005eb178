"""What somebody wants of an arm, as it is typed, kept and held against a trial."""

import math

import pytest

from tests.backend.views.test_start import arm_of, run_of
from tokendyno.backend.ablation.advise.wishes import Limits, parse_seconds, read_quality, seconds_typed, value_of
from tokendyno.backend.ablation.journal import Cost, Heading, Journal, Trial
from tokendyno.backend.ablation.trials import Task, keep
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import PhaseName

TRIAL = Trial("", 0, [0.5, 0.01, 0.03], 0.5, 100 << 20, None, [], start_s=2.0)


def cost(kl_nats: float, word: str, finer: bool = False) -> Cost:
    return Cost("arm", kl_nats, 0.9, 1.0, word, finer=finer)


def test_a_start_is_counted_without_the_imports_for_which_the_first_worker_waits() -> None:
    journal = Journal(None, Heading("pocket", {}, [], [], Workload(prompt="x")))
    waits: dict[PhaseName, float] = {"start": 0.5, "import": 3.0, "load": 2.0, "warmup": 1.0}
    forked: dict[PhaseName, float] = {"start": 0.1, "load": 2.0, "warmup": 1.0}
    for number, phases in enumerate((waits, forked)):
        run = run_of(arm_of("A", phases, compiled=None))
        keep(Task("", number, run.request, ""), run, journal, "", 1.0)
    first, second = journal.trials.values()
    assert first.start_s == second.start_s == pytest.approx(3.0 + first.ttft_s)


def test_a_trial_is_over_limits_in_words() -> None:
    assert Limits(100 << 20, 0.02, 0.5).exceeded(TRIAL) == ""
    said = Limits(99 << 20, 0.019, 0.4).exceeded(TRIAL)
    assert said == "memory of 100 MiB over 99.0 MiB, time a token of 20.0 ms over 19.0 ms, TTFT of 500 ms over 400 ms"


@pytest.mark.parametrize(
    ("limits", "found", "allowed"),
    [
        (Limits(), None, True),
        (Limits(), cost(0.01, "small"), True),
        (Limits(), cost(0.2, "large"), False),
        (Limits(), cost(0.2, "large", finer=True), True),
        (Limits(), cost(0.01, ""), False),
        (Limits(kl_nats=0.3), cost(0.2, "large"), True),
        (Limits(kl_nats=0.005), cost(0.01, "small"), False),
        (Limits(any_quality=True), cost(9.0, "large"), True),
    ],
)
def test_quality_that_is_allowed(limits: Limits, found: Cost | None, allowed: bool) -> None:
    assert limits.allows(found) is allowed


def test_limits_come_back_from_a_journal() -> None:
    limits = Limits(24 << 30, 0.015, None, 0.05, True)
    assert Limits.of_settings([("for", "latency"), *limits.settings(), ("text", "...")]) == limits
    assert Limits().settings() == []
    zero = Limits(kl_nats=0.0)
    assert Limits.of_settings(zero.settings()) == zero, "no divergence at all is a limit too"


@pytest.mark.parametrize("typed", [("24GiB", "15ms", "1s", "0.05"), ("1.5GB", "", "1m", "any"), ("", "", "", "same")])
def test_limits_are_written_as_they_were_typed(typed: tuple[str, str, str, str]) -> None:
    assert Limits.read(*typed).typed() == typed


def test_what_is_to_be_least() -> None:
    assert value_of(TRIAL, "latency") == value_of(TRIAL, "throughput") == math.log(0.02)
    assert value_of(TRIAL, "quick-start") == pytest.approx(math.log(2.04))
    memory = value_of(TRIAL, "memory")
    assert memory == pytest.approx(math.log(100 << 20) + 0.05 * math.log(0.02))


@pytest.mark.parametrize(("text", "found"), [("15ms", 0.015), ("1s", 1.0), ("10m", 600.0), ("1.5h", 5400.0)])
def test_times_have_units(text: str, found: float) -> None:
    assert parse_seconds(text) == pytest.approx(found)
    assert parse_seconds(seconds_typed(found)) == found


@pytest.mark.parametrize("text", ["15", "", "0s", "ten minutes", "1e3s", "-1s"])
def test_times_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InputError, match="such as 15ms, 1s or 10m"):
        parse_seconds(text)


def test_quality_is_a_word_or_a_number() -> None:
    assert read_quality("same") == (None, False) and read_quality("any") == (None, True)
    assert read_quality("0.05") == (0.05, False)
    for text in ("good", "-1", "nan", "inf"):
        with pytest.raises(InputError, match=r"same|any"):
            read_quality(text)
