"""Arms with quantized weights, and tiny models to quantize."""

from dataclasses import replace
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations.axes.quantization import Quantization
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.worker.witness.quantization import kind_of

PACKED = str(PRESETS / "models" / "pocket-mxfp4")
EVERY = [choice.name for choice in Quantization.choices]
DENSE_ONLY = [name for name in EVERY if name.startswith(("bnb", "torchao", "quanto"))]
NF4 = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}


def judge(model: str | ModelFacts, machine: Machine = CPU, /, **choices: str) -> Checked:
    given = facts(model) if isinstance(model, str) else model
    return check(make_config("m", choices), given, machine, Workload(prompt="Once", max_new_tokens=8))


def of(checked: Checked, level: str = "") -> list[Verdict]:
    return [v for v in checked.verdicts if v.axis == "quantization" and (not level or v.level == level)]


def gpu(*capability: int, **more: Any) -> Machine:
    return replace(H200, gpus=(replace(H200.gpus[0], capability=capability),), **more)  # type: ignore[arg-type]


def without(package: str, machine: Machine = H200) -> Machine:
    return replace(machine, packages=tuple(pair for pair in machine.packages if pair[0] != package))


def llama(**more: int) -> tuple[Any, dict[str, Any]]:
    """A tiny model and the keywords that load it again."""
    shape = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(LlamaConfig(**(shape | heads | more)), dtype=torch.bfloat16)
    return model, {"config": model.config, "state_dict": model.state_dict(), "dtype": torch.bfloat16}


def packed_kinds(model: Any) -> list[str]:
    return [kind for weight in model.parameters() if (kind := kind_of(weight))]
