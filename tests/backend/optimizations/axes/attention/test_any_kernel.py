"""attention=org/name and kernels=mapping: any kernels of the Hub, here from folders, by the libraries' own loading."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.local_worker import LocalWorker
from tests.support.machines import CPU, facts
from tests.support.worker import SENTENCE
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config, parse_arm
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.allowed import check_allowed
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.messages import Generate
from tokendyno.backend.models import resolve
from tokendyno.backend.paths import ROOT

NAME, WORK = "some/attn", Workload(prompt=SENTENCE)
MACHINE = replace(CPU, packages=(*CPU.packages, ("kernels", "0.17.2")), hub_offline=True, hub_kernels=(NAME,))
KERNEL = """
import torch

def supports_flash_attn():
    return True

def flash_attn_forward(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
    groups, length = query.shape[1] // key.shape[1], key.shape[2]
    key, value = (one.repeat_interleave(groups, 1) for one in (key, value))
    seen = torch.ones(query.shape[2], length, dtype=torch.bool).tril(length - query.shape[2])
    scores = (query @ key.transpose(2, 3) * scaling).masked_fill(~seen, float("-inf"))
    return (scores.softmax(-1) @ value).transpose(1, 2).contiguous(), None
"""


def package(base: Path, name: str, code: str) -> Path:
    """A kernel package for CPUs of one file."""
    folder = base / name / "build" / "torch-cpu"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(code)
    about = {"id": f"some_{name}_cpu_1", "name": name, "version": 1, "license": "Apache-2.0", "python-depends": []}
    (folder / "metadata.json").write_text(json.dumps({**about, "backend": {"type": "cpu"}}))
    return base / name


def checked(attention: str, machine: Any = MACHINE) -> Checked:
    return check(make_config("gpt2", {"attention": attention}), facts("gpt2"), machine, WORK)


def test_a_bare_name_is_taken_and_what_cannot_be_had_is_refused_with_the_reason() -> None:
    assert parse_arm("gpt2", f"attention={NAME}").choices == (("attention", f"hub:repository={NAME}"),)
    assert parse_arm("gpt2", "attention=kernels-community/flash-attn2").choices[0][1] == "kernels-community/flash-attn2"
    for wrong in ("some/../attn", "a/b/c", "some/attn;x=1"):
        with pytest.raises(InputError):
            parse_arm("gpt2", f"attention={wrong}")
    fine = checked(NAME)
    assert not fine.blocked and (fine.plan.load.attention, fine.plan.load.any_kernel) == (NAME, True)
    for machine, said in (
        (replace(MACHINE, hub_kernels=()), "LOCAL_KERNELS=org/name=/folder"),
        (replace(MACHINE, packages=()), "pip install kernels"),
    ):
        assert said in checked(f"{NAME}@main", machine).refusal()
    assert "Write attention=org/name" in checked("hub").refusal()


@pytest.mark.parametrize(("mode", "runs"), [("local", True), ("team", False), ("public", False)])
def test_strangers_code_runs_in_local_mode_alone(mode: Any, runs: bool) -> None:
    request = Request("gpt2", [ArmRequest("A", {"attention": NAME})], WORK)
    limits = replace(LIMITS[mode], models=())
    if runs:
        check_allowed(request, facts("gpt2"), {"A": checked(NAME)}, MACHINE, limits)
    else:
        with pytest.raises(InputError, match="does not know"):
            check_allowed(request, facts("gpt2"), {"A": checked(NAME)}, MACHINE, limits)


def test_a_kernel_of_a_folder_is_loaded_called_and_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kernels")
    shape = {"model_type": "llama", "vocab_size": 300, "hidden_size": 32, "intermediate_size": 32, "dtype": "float32",
             "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 2}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(shape))
    folders = [f"{NAME}={package(tmp_path, 'attn', KERNEL)}", f"some/empty={package(tmp_path, 'empty', '')}"]
    norms = f"some/norms={ROOT / 'presets' / 'kernels' / 'rmsnorm'}"
    monkeypatch.setenv("LOCAL_KERNELS", ":".join([*folders, norms]))
    model = f"random:{tmp_path}"
    asked = check(make_config(model, {"attention": NAME}), resolve(model), MACHINE, WORK)
    finished = LocalWorker(asked.plan.load).run(Generate(asked.plan, SENTENCE, 0, 6, 1, 0.0, 0, True, True, prove=True))
    found = {one.axis: one for one in finished.findings}
    assert found["attention"].effective == asked.planned["attention"] == f"hub:repository={NAME}"
    assert found["tokens"].reached == found["tokens"].expected == 6

    machine = replace(MACHINE, hub_kernels=("some/empty",))
    nothing = check(make_config(model, {"attention": "some/empty"}), resolve(model), machine, WORK)
    with pytest.raises(InputError, match="some/empty cannot be used as attention"):
        LocalWorker(nothing.plan.load)

    machine = replace(MACHINE, hub_kernels=("some/norms",))
    for layer, said in (("RMSNorm", "verified"), ("Other", "cannot be had: RMSNorm by some/norms:Other")):
        choice = f"mapping:RMSNorm=some/norms:{layer}"
        mapped = check(make_config(model, {"kernels": choice}), resolve(model), machine, WORK)
        assert not mapped.blocked
        if said != "verified":
            with pytest.raises(InputError, match=said):
                LocalWorker(mapped.plan.load)
            continue
        job = Generate(mapped.plan, SENTENCE, 0, 6, 1, 0.0, 0, True, True, prove=True)
        found = {one.axis: one for one in LocalWorker(mapped.plan.load).run(job).findings}
        assert found["kernels"].effective == choice and found["kernels"].reached == found["kernels"].expected
