"""One line each about the model and the machine, for the top of the page."""

from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.units import bytes_text, three

BETWEEN = "\u00a0\u00b7 "
"""Between facts on a line, which may break after the dot and not before it."""

NOT_HERE = "The model cannot be loaded here now: the line under the model says why."
"""A verdict on both arms."""


def model_line(facts: ModelFacts, obstacle: str = "", download_bytes: int = 0) -> str:
    """The facts of a model. `obstacle`: why it cannot be loaded; `download_bytes`: what a run downloads."""
    fixed = facts.layer_kinds.count("fixed")
    if facts.kind == "decoder" and (facts.sliding_layers or fixed):
        sliding = f"{facts.sliding_layers} sliding (window {facts.window:,}), " if facts.window else ""
        kinds = f"{sliding}{facts.full_layers} full{f', {fixed} without a growing cache' if fixed else ''}"
    else:
        kinds = "all full attention" if facts.kind == "decoder" else "encoder"
    parts = [
        facts.architecture,
        f"{_count(facts.parameters)} parameters in {facts.dtype}",
        f"{facts.layers} layers: {kinds}",
        f"{facts.kv_heads} {'KV heads' if facts.kind == 'decoder' else 'heads'}, head size {facts.head_dim}",
    ]
    if facts.experts:
        parts.append(f"{facts.experts_per_token} of {facts.experts} experts per token")
    parts.append(f"{facts.max_positions:,} positions")
    if facts.kind == "encoder":
        parts.append("New tokens counts forward passes over the prompt")
    if download_bytes:
        parts.append(f"a run downloads {' '.join(bytes_text(download_bytes))}")
    if facts.note:
        parts.append(facts.note)
    line = BETWEEN.join(parts)
    return f"\u2715 {obstacle} \u2014 {line}" if obstacle else line


def machine_line(machine: Machine) -> str:
    """The machine on which models will run. How much memory is free changes with every run: the arms say it."""
    if machine.gpus:
        gpu = machine.gpus[0]
        others = f" (first of {len(machine.gpus)})" if len(machine.gpus) > 1 else ""
        return f"{gpu.name}{others}, {' '.join(bytes_text(gpu.memory_bytes))}, driver {machine.driver}"
    return f"CPU only: {machine.cpu}, {machine.cores} cores, {' '.join(bytes_text(machine.memory_bytes))}"


def _count(number: int) -> str:
    for size, letter in ((10**9, "B"), (10**6, "M"), (10**3, "K")):
        if number >= size:
            return f"{three(number / size)} {letter}"
    return str(number)
