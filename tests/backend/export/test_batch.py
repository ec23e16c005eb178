"""An arm of many requests as a script: it runs by itself and gives the tokens of the other way to batch them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tokendyno.backend import hardware
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import workload_of
from tokendyno.backend.export.batch import batch_script
from tokendyno.backend.models import resolve
from tokendyno.backend.traffic import Traffic, TrafficRequest
from tokendyno.backend.traffic.presets import drawn
from tokendyno.backend.traffic.requests import Draw

DRAWN = drawn(Draw(4, (5, 30), (2, 8)), 1, 2)
GIVEN = Traffic([TrafficRequest(0.0, 3, prompt='"Once"\n\\ upon'), TrafficRequest(0.1, 2, token_ids=[5, 6, 7])])
ARMS = [
    {"batching": "static"},
    {"batching": "static", "batch_order": "sorted", "cache": "static", "shapes": "buckets"},
    {"batching": "static", "cache": "static", "loop": "own", "shapes": "buckets"},
    {"batching": "continuous", "page_size": "16", "scheduler": "prefill_first", "batch_tokens": "128"},
    {"batching": "off", "cache": "static"},
]


def printed(traffic: Traffic, **choices: str) -> str:
    facts, machine, work = resolve("pocket"), hardware.detect(), workload_of(traffic, ignore_eos=True)
    checked = check(make_config("pocket", {"dtype": "float32", **choices}), facts, machine, work, 0, traffic)
    assert not checked.blocked
    return batch_script(checked, facts, work, traffic)


@pytest.mark.parametrize("choices", ARMS, ids=lambda one: ",".join(one.values()))
@pytest.mark.parametrize("traffic", [DRAWN, GIVEN], ids=["drawn", "given"])
def test_a_script_is_python_and_has_every_request(choices: dict[str, str], traffic: Traffic) -> None:
    text = printed(traffic, **choices)
    compile(text, "script.py", "exec")
    assert all(len(line) <= 120 or "token_ids" in line for line in text.splitlines())
    assert ("ContinuousBatchingConfig(" in text) is (choices["batching"] == "continuous")
    for one in traffic.requests:
        assert (str(one.seed) if one.seed else "upon" if one.prompt else "[5, 6, 7]") in text


@pytest.mark.parametrize(
    "arms",
    [
        pytest.param([ARMS[2], ARMS[3]], marks=pytest.mark.full, id="custom loop and continuous"),
        pytest.param(ARMS, marks=pytest.mark.full, id="all"),
    ],
)
def test_every_way_to_batch_gives_the_same_texts(tmp_path: Path, arms: list[dict[str, str]]) -> None:
    told = []
    for i, choices in enumerate(arms):
        file = tmp_path / f"{i}.py"
        file.write_text(printed(DRAWN, **choices), encoding="utf-8")
        ran = subprocess.run([sys.executable, file.name], cwd=tmp_path, capture_output=True, text=True, timeout=200)
        assert ran.returncode == 0, ran.stderr[-2000:]
        *texts, last = ran.stdout.splitlines()
        assert last.startswith(f"{sum(one.max_new_tokens for one in DRAWN.requests)} useful tokens in ")
        told.append(texts)
    assert all(texts == told[0] and len(texts) == len(DRAWN.requests) for texts in told)
