"""The verdicts on an arm, as the page shows them."""

import json
from typing import Any

from tests.support.worker import request
from ui.compare.verdicts import describe


def described(warm_bench: Any, **choices: str) -> Any:
    return json.loads(describe(warm_bench.check(request(choices))["A"], 2**30))


def test_a_blocked_arm_says_why_and_offers_the_fix(warm_bench: Any) -> None:
    (line,) = [v for v in described(warm_bench, loop="own")["verdicts"] if v["level"] == "blocked"]
    assert line["fix"] == {"cache": "static"} and line["fix_text"] == "Set KV cache to static"
    assert line["reason"] and line["source"]


def test_a_fallback_offers_what_will_run(warm_bench: Any) -> None:
    (line,) = [v for v in described(warm_bench, attention="sdpa")["verdicts"] if v["level"] == "fallback"]
    assert line["fix"] == {"attention": "eager"}


def test_memory_is_predicted_against_what_is_free(warm_bench: Any) -> None:
    found = described(warm_bench)
    assert found["memory"].startswith("Predicted memory ") and found["memory"].endswith("of 1.00 GiB free")
    assert found["share"] > 0 and "weights" in found["parts"]
