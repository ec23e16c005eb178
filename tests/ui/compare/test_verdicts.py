"""An arm in short: its chips, its memory and the verdicts on it, as the page shows them."""

import json
from dataclasses import replace
from typing import Any

from tests.support.machines import CPU, facts
from tests.support.worker import request
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import ArmRequest, Workload
from tokendyno.backend.hardware.number_formats import FormatTime
from tokendyno.ui.compare.verdicts import describe


def described(warm_bench: Any, **choices: str) -> Any:
    run_request = request(choices)
    return json.loads(describe(run_request.arms[0], "baseline", warm_bench.check(run_request)["A"]))


def test_a_blocked_arm_says_why_and_offers_the_fix(warm_bench: Any) -> None:
    (line,) = [v for v in described(warm_bench, loop="own")["verdicts"] if v["level"] == "blocked"]
    assert line["fix"] == {"cache": "static"} and line["fix_text"] == "Set KV cache to static"
    assert line["reason"] and line["source"]


def test_a_default_arm_says_what_transformers_gets_and_no_more() -> None:
    checked = check(make_config("pocket", {}), facts("pocket"), CPU, Workload(prompt="x"))
    shown = json.loads(describe(ArmRequest("A"), "baseline", checked))
    assert shown["gets"] == ["from_pretrained gets no arguments", "generate gets do_sample=False"]
    assert shown["verdicts"] == []


def test_a_fallback_offers_what_will_run(warm_bench: Any) -> None:
    (line,) = [v for v in described(warm_bench, attention="sdpa")["verdicts"] if v["level"] == "fallback"]
    assert line["fix"] == {"attention": "eager"}


def test_memory_is_predicted_against_what_is_free(warm_bench: Any) -> None:
    """What is free is what the rules went by, workers that would end included: one figure for both arms."""
    checked = replace(warm_bench.check(request({}))["A"], room_bytes=3 << 29)
    shown = json.loads(describe(ArmRequest("A"), "baseline", checked))
    assert shown["memory"].endswith("predicted of 1.50 GiB free\u00a0\u00b7 runs here")
    assert shown["share"] > 0 and "weights" in shown["parts"]


def test_what_auto_settled_for_is_said_in_short_beside_the_memory() -> None:
    slow = replace(CPU, bfloat16=(FormatTime(8 << 20, 1, 2.14),))
    checked = check(make_config("pocket", {}), facts("pocket"), slow, Workload(prompt="x"))
    shown = json.loads(describe(ArmRequest("A"), "baseline", checked))
    assert shown["memory"].startswith("dtype auto \u2192 float32\u00a0\u00b7 ") and shown["verdicts"] == []
    assert "took 2.14 times as long" in shown["parts"]


def test_what_differs_from_the_defaults_is_a_chip_with_its_worst_verdict(warm_bench: Any) -> None:
    shown = described(warm_bench, loop="own", attention="sdpa", cache="dynamic")
    chips = [(chip["axis"], chip["choice"], chip["level"], chip["default"]) for chip in shown["chips"]]
    assert chips == [("Attention", "sdpa", "fallback", "auto"), ("Decode loop", "custom", "blocked", "generate")]
    assert shown["memory"].endswith("cannot run") and shown["title"] == "Baseline"


def test_what_blocks_a_recorded_arm_here_is_a_note(warm_bench: Any) -> None:
    run_request = request({"loop": "own"})
    checked = replace(warm_bench.check(run_request)["A"], room_bytes=1)
    shown = json.loads(describe(run_request.arms[0], "baseline", checked, recorded=True))
    assert {line["level"] for line in shown["verdicts"]} == {"note"} and shown["share"] == 1
    assert shown["verdicts"][0]["reason"].startswith("Recorded on another machine; here it cannot run. ")
    assert [chip["level"] for chip in shown["chips"]] == [""]
