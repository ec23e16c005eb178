"""Requests are drawn alike everywhere, and within what was asked."""

from pathlib import Path

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.traffic import Traffic, TrafficRequest
from tokendyno.backend.traffic.presets import drawn, traffic_preset, traffic_presets
from tokendyno.backend.traffic.requests import Draw, Limits, draw, prompt_text
from tokendyno.backend.traffic.trace_file import read_trace


def test_a_seed_draws_the_same_requests_in_every_version() -> None:
    assert draw(Draw(2, (16, 256), (16, 256)), 1) == [
        TrafficRequest(0.0, 220, 48, seed=820096752),
        TrafficRequest(0.0, 135, 77, seed=482637355),
    ]
    assert draw(Draw(), 1) == draw(Draw(), 1) != draw(Draw(), 2)


def test_lengths_reach_both_ends_and_go_no_further() -> None:
    requests = draw(Draw(2_000, (3, 5), (7, 7)), 1)
    assert {request.prompt_tokens for request in requests} == {3, 4, 5}
    assert {request.max_new_tokens for request in requests} == {7}


def test_a_poisson_stream_keeps_its_rate_and_bursts_arrive_together() -> None:
    stream = draw(Draw(2_000, arrival="poisson", rate_per_s=4.0), 1)
    assert stream[0].arrival_s == 0.0
    assert 1_999 / stream[-1].arrival_s == pytest.approx(4.0, rel=0.1)
    bursts = [request.arrival_s for request in draw(Draw(40, arrival="burst", rate_per_s=4.0, burst=20), 1)]
    assert bursts == [0.0] * 20 + [5.0] * 20


def test_some_prompts_are_long() -> None:
    requests = draw(Draw(1_000, (1, 9), (1, 1), long_share=0.1, long_prompt_tokens=(100, 200)), 3)
    assert 60 < sum(request.prompt_tokens >= 100 for request in requests) < 140


def test_prompts_of_two_seeds_share_no_beginning_and_have_enough_words() -> None:
    texts = [prompt_text(seed, 30) for seed in range(50)]
    assert all(len(text.split()) >= 30 for text in texts)
    assert len({text[:60] for text in texts}) == 50


def test_presets_are_traffic() -> None:
    assert [one.name for one in traffic_presets()] == ["small", "at-once", "poisson", "burst", "long-among-short"]
    traffic = drawn(traffic_preset("at-once").draw, 1)
    assert len(traffic.requests) == 100
    assert {16 <= one.prompt_tokens <= 256 and 16 <= one.max_new_tokens <= 256 for one in traffic.requests} == {True}
    with pytest.raises(InputError, match="at-once"):
        traffic_preset("atonce")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Draw(0), "0 requests"),
        (lambda: Draw(5, (9, 3)), "prompt_tokens is 9 to 3"),
        (lambda: Draw(5, arrival="poisson"), "need a rate"),
        (lambda: Traffic([]), "no requests"),
        (lambda: Limits(ttft_s=-1.0), "0 turns it off"),
        (lambda: Limits(token_s=float("nan")), "0 turns it off"),
        (lambda: Limits(request_s=float("inf")), "0 turns it off"),
        (lambda: Traffic([TrafficRequest(0.0, 5)]), "no prompt"),
        (lambda: Traffic([TrafficRequest(2.0, 5, 5), TrafficRequest(1.0, 5, 5)]), "order of their arrival"),
        (lambda: Traffic([TrafficRequest(0.0, 5, 5)], concurrent=0), "concurrent is 0"),
        (lambda: Traffic([TrafficRequest(0.0, 5, 5)], pages=-1), "pages is -1"),
    ],
    ids=range(11),
)
def test_wrong_traffic_is_a_sentence(wrong: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        wrong()  # type: ignore[operator]


# --- traces ----------------------------------------------------------------------------------------

GOOD = '{"max_new_tokens": 5, "prompt": "Once", "arrival_s": 2}\n\n{"max_new_tokens": 6, "prompt_tokens": 9}\n'


def test_requests_come_in_the_order_of_their_arrival(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(GOOD + '{"max_new_tokens": 1, "token_ids": [5, 6], "arrival_s": 1.5}')
    requests = read_trace(tmp_path / "t.jsonl")
    assert [(request.arrival_s, request.max_new_tokens) for request in requests] == [(0.0, 6), (1.5, 1), (2.0, 5)]
    assert [request.tokens for request in requests] == [9, 2, 1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "line 4 cannot be read"),
        ('{"max_new_tokens": "5", "prompt": "a"}', "line 4 cannot be read: Expected `int`"),
        ('{"max_new_tokens": 5, "promt": "a"}', "line 4 cannot be read: .*promt"),
        ('{"max_new_tokens": 0, "prompt": "a"}', "line 4: max_new_tokens is 0"),
        ('{"max_new_tokens": 5}', "line 4 has no prompt"),
        ('{"max_new_tokens": 5, "prompt": "a", "token_ids": [1]}', "line 4 has token_ids and another prompt"),
        ('{"max_new_tokens": 5, "prompt": "a", "arrival_s": -1}', "line 4: arrival_s is -1"),
        ("\xff", "line 4 cannot be read"),
        ('{"a\\nb\\u001b[2J": 1}', "unknown field `a b`"),
        ('{"' + "x" * 5_000 + '": 1}', r"x\.\.\.\. Write"),
    ],
)
def test_a_bad_line_is_named_by_its_number(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "t.jsonl").write_bytes(GOOD.encode() + line.encode("latin-1"))
    with pytest.raises(InputError, match=said):
        read_trace(tmp_path / "t.jsonl")


def test_a_file_without_requests_or_no_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text("\n\n")
    with pytest.raises(InputError, match="has no requests"):
        read_trace(tmp_path / "t.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path / "none.jsonl")
