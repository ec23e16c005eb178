"""The measured run of what was predicted to fit: of this history, on that device before others, else a shipped one."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from tests.support.kept_runs import H200, LAPTOP, history_of, made, run_on
from tests.support.machines import CPU
from tokendyno.backend.config import ArmRequest
from tokendyno.backend.fit.device import device_of
from tokendyno.backend.fit.table import Fit, fit
from tokendyno.backend.history.measured import measured
from tokendyno.backend.hosting.visitor import LOCAL_USER, Visitor
from tokendyno.backend.runs.records import Created

H100 = H200 | {"gpu0": "NVIDIA H100 80GB HBM3, 79.6 GiB, capability 9.0"}


def fitting_on(model: str, gpu: str) -> Fit:
    return fit(model, device_of(CPU, gpu))


def run_of(run_id: str, model: str, choices: dict[str, str], machine: dict[str, str], **more: Any) -> Created:
    first = run_on(run_id, machine, **more)
    request = msgspec.structs.replace(first.request, model=model, arms=[ArmRequest("A", choices)])
    return msgspec.structs.replace(first, request=request, arms=first.arms[:1])


def test_a_run_of_the_same_model_and_arm_is_found(tmp_path: Path) -> None:
    fitting = fitting_on("Llama-3-70B", "H100-SXM")
    assert fitting.smallest.found is not None
    choices = dict(fitting.smallest.found.choices)
    assert choices
    runs = [
        run_of("other-arm", "Llama-3-70B", {}, H200, at_s=9.0),
        run_of("other-model", "Llama-3-8B", choices, H200, at_s=8.0),
        run_of("on-a-cpu", "Llama-3-70B", choices, LAPTOP, at_s=7.5),
        run_of("elsewhere", "Llama-3-70B", choices | {"compile": "off"}, H200, at_s=7.0),
    ]
    with history_of(tmp_path / "h.sqlite", [made(one, (20,)) for one in runs]) as kept:
        one = measured(fitting, kept.listing, LOCAL_USER)
        assert one is not None and one.run == "elsewhere"
        assert one.words == "The same choices ran on NVIDIA H200, with their own prompt and length: run elsewhere."
        assert measured(fitting, kept.listing, Visitor("guest:eve")) is None
    there = run_of("there", "Random:Llama-3-70B", choices, H100, at_s=1.0)
    with history_of(tmp_path / "two.sqlite", [made(one, (20,)) for one in (*runs, there)]) as kept:
        one = measured(fitting, kept.listing, LOCAL_USER)
        assert one is not None and one.run == "there"


def test_what_comes_with_tokendyno_is_found_without_a_history(tmp_path: Path) -> None:
    with history_of(tmp_path / "h.sqlite") as kept:
        fitting = fitting_on("Llama-3-8B", "H100-SXM")
        one = measured(fitting, kept.listing, LOCAL_USER)
        assert one is not None and (one.run, one.machine) == ("recorded-launch-bound", "NVIDIA H100 80GB HBM3")
        assert measured(fitting_on("Llama-3-8B", "T4"), kept.listing, LOCAL_USER) is None
        nothing = replace(fitting, smallest=replace(fitting.smallest, found=None))
        assert measured(nothing, kept.listing, LOCAL_USER) is None
