"""Values of the Batching page's controls, all of them untrusted, as a request and back."""

from pathlib import Path
from typing import Any

import pytest

from tokendyno.backend.config import MOST_PAIRS, Request
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.ui.batching.request import Fields, changed, choice_values, list_is_hidden, read_request, traffic_values
from tokendyno.ui.compare.request import within

PLAIN: dict[str, Any] = {
    "model": "pocket", "requests": 6, "concurrent": 2, "ttft_limit_s": 1, "prompt_low": 4, "prompt_high": 9,
    "new_low": 2, "new_high": 5, "arrival": "burst", "rate": 3.0, "burst": 2, "seed": 7, "seconds": 20, "price": 2.5,
    "long_percent": 25, "long_low": 20, "long_high": 30, "pages": 40, "token_limit_ms": 50, "request_limit_s": 0,
    "ignore_eos": True, "trace": "",
}  # fmt: skip


def values(a: dict[str, str] | None = None, **changes: Any) -> list[object]:
    """Of the controls."""
    axes = [*choice_values(a or {"batching": "static"}), *choice_values({"batching": "continuous"})]
    return [*Fields(**(PLAIN | changes)), *axes]


def request(local_paths: bool = True, a: dict[str, str] | None = None, **changes: Any) -> Request:
    return read_request(values(a, **changes), local_paths)


def test_every_control_reaches_the_request() -> None:
    read = request()
    traffic = read.traffic
    assert traffic is not None and len(traffic.requests) == 6 and (traffic.concurrent, traffic.pages) == (2, 40)
    assert [one.arrival_s for one in traffic.requests] == pytest.approx([0, 0, 2 / 3, 2 / 3, 4 / 3, 4 / 3], abs=1e-5)
    assert (traffic.limits.ttft_s, traffic.limits.token_s, traffic.limits.request_s) == (1.0, 0.05, 0.0)
    assert {arm.name: arm.choices for arm in read.arms} == {
        "A": {"batching": "static"},
        "B": {"batching": "continuous"},
    }
    assert (read.workload.seed, read.workload.ignore_eos, read.workload.batch_size) == (7, True, 2)
    assert (read.until_s, read.workload.repeats, read.price_per_hour) == (20, MOST_PAIRS, 2.5)
    assert "25% of them 20 to 30" in traffic.label


def test_a_run_sets_the_controls_that_make_it_again() -> None:
    first = request()
    again: dict[str, Any] = traffic_values(first)
    assert request(**again) == first and "seconds" not in again, "Run means the same for everybody"
    given = traffic_values(request(trace='{"prompt_tokens": 3, "max_new_tokens": 2}'))
    assert "requests" not in given and given["concurrent"] == 2


def test_a_visitor_gets_as_many_pairs_as_the_tokens_of_the_mode_allow() -> None:
    few, many = (request(requests=count, new_low=60, new_high=60) for count in (20, 200))
    assert within(few, LIMITS["local"]).workload.repeats == MOST_PAIRS
    assert within(few, LIMITS["public"]).workload.repeats == LIMITS["public"].repeats
    assert within(many, LIMITS["public"]).workload.repeats == 2


def test_requests_are_given_as_text_or_by_the_path_of_a_file(tmp_path: Path) -> None:
    lines = '{"prompt_tokens": 3, "max_new_tokens": 2, "arrival_s": 1}\n{"prompt": "Once", "max_new_tokens": 1}'
    text, file = request(local_paths=False, trace=lines).traffic, tmp_path / "trace.jsonl"
    file.write_text(lines)
    read = request(trace=str(file)).traffic
    assert text is not None and read is not None and text.requests == read.requests
    assert [one.arrival_s for one in text.requests] == [0.0, 1.0] and read.label == "2 requests from trace.jsonl"
    with pytest.raises(InputError, match="cannot be opened from here"):
        request(local_paths=False, trace=str(file))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"requests": 0}, "from 1 to 2,000"),
        ({"prompt_low": 10}, "Prompt tokens go from 10 to 9"),
        ({"rate": 0}, "rate above 0"),
        ({"rate": float("nan")}, "Requests a second is 'nan'. Enter a number"),
        ({"concurrent": 0}, "Concurrency is 0; it must be a whole number from 1 to 256"),
        ({"pages": -1}, "KV pages is -1; it must be a whole number from 0"),
        ({"burst": 0}, "Requests in a burst is 0; it must be a whole number from 1 on"),
        ({"long_percent": 101}, "Long prompts, % is 101; it must be from 0 to 100"),
        ({"ttft_limit_s": -1}, "TTFT limit, s is -1; it must be a number from 0 on"),
        ({"seconds": 0}, "Seconds is 0"),
        ({"price": float("inf")}, "it must be a number from 0 on"),
        ({"trace": '{"prompt_tokens": 3}'}, "line 1"),
        ({"trace": "/nowhere/at/all"}, "cannot be read"),
        ({"a": {"batching": "always"}}, "always"),
    ],
)
def test_a_bad_value_is_named_with_what_to_do(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        request(**changes)


def test_what_was_edited_since_a_run_is_named() -> None:
    ran = request()
    assert changed(ran, request()) == []
    assert changed(ran, request(model="other", seed=8)) == ["the model", "the traffic"]
    assert changed(ran, request(ttft_limit_s=2, price=0, seconds=9)) == ["the limits", "the price"]
    assert changed(ran, request(a={"batching": "static", "batch_order": "sorted"})) == ["arm A"]
    given = request(trace='{"prompt_tokens": 3, "max_new_tokens": 2}')
    assert changed(given, request()) == [] and list_is_hidden(given, request())
    assert not list_is_hidden(given, given) and not list_is_hidden(ran, request())
    assert changed(given, request(trace='{"prompt_tokens": 4, "max_new_tokens": 2}')) == ["the traffic"]
