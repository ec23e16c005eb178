"""What is said of an arm."""

import json
from typing import Any

from tests.helpers import request
from ui.verdicts import describe


def described(make_bench: Any, **choices: str) -> Any:
    bench = make_bench()
    return json.loads(describe(bench.check(request(choices))["A"], 2**30))


def test_a_blocked_arm_says_why_and_offers_the_fix(make_bench: Any) -> None:
    (line,) = [v for v in described(make_bench, compile="default")["verdicts"] if v["level"] == "blocked"]
    assert line["fix"] == {"cache": "static"} and line["fix_text"] == "Set KV cache to static"
    assert line["reason"] and line["source"]


def test_a_fallback_offers_what_will_run(make_bench: Any) -> None:
    (line,) = [v for v in described(make_bench, attention="sdpa")["verdicts"] if v["level"] == "fallback"]
    assert line["fix"] == {"attention": "eager"}


def test_memory_is_predicted_against_what_is_free(make_bench: Any) -> None:
    found = described(make_bench)
    assert found["memory"].startswith("Predicted memory ") and found["memory"].endswith("of 1.00 GiB free")
    assert found["share"] > 0 and "weights" in found["parts"]
