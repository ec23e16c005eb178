"""For how many of 1,000 drawn subjects, on either side of each edge, each rule holds is as `recorded_rules.txt` has it.

A rule that holds elsewhere was meant to, or is a fault: an arm is refused that ran, or runs where it cannot.
`python -m tests.backend.optimizations.test_recorded_rules` records all anew, with axes and choices that are new; the
file's diff says which rules hold more or less often than before.
"""

import functools
import hashlib
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.machines import CPU, GIB, H200, facts
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.hardware import Gpu, Machine
from tokendyno.backend.hardware.number_formats import FormatTime
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.models.facts import CacheLayers
from tokendyno.backend.models.router import Router
from tokendyno.backend.optimizations import Choice, Optimization, Subject, all_axes
from tokendyno.backend.optimizations.axes.attention import HUB_FA2, HUB_FA3, HUB_FA4
from tokendyno.backend.optimizations.routed import KERNELS

FILE = Path(__file__).with_name("recorded_rules.txt")
DRAWS = 1_000
MODELS = (
    "pocket",
    "random:gpt2",
    "random:bert-base-uncased",
    "random:Mistral-7B-v0.1",
    "random:Gemma-3-1b",
    "random:gpt-oss-20b",
    "gpt-oss-20b",
    "random:Qwen3-0.6B",
    "Llama-3-8B",
    "random:Llama-3-8B",
    "random:Olmo-3-7B",
)
ARCHITECTURES = (
    "falcon",
    "gemma2",
    "bloom",
    "llama4_text",
    "phi3",
    "gptj",
    "opt",
    "qwen3",
    "llama",
    "gpt_oss",
    "zamba2",
    "deepseek_v3",
    "falcon_h1",
    "a_new_one",
)
CHECKPOINTS = (
    "mxfp4",
    "fp8",
    "gptq",
    "awq",
    "compressed-tensors",
    "bitsandbytes",
    "torchao",
    "quanto",
    "hqq",
    "aqlm",
    "eetq",
    "vptq",
    "quark",
    "auto-round",
    "bitnet",
    "fbgemm_fp8",
    "higgs",
    "spqr",
    "fp_quant",
    "sinq",
)
CACHES = (
    (CacheLayers(4, "full", 64),),
    (CacheLayers(4, "full", 64, even=False),),
    (CacheLayers(4, "fixed", 64),),
    (CacheLayers(4, "full", 64, state_bytes=8),),
    (CacheLayers(2, "full", 64), CacheLayers(2, "fixed", 0)),
)
ROUTERS = (Router("group_limited_greedy"), Router(groups=8, experts=12), Router(narrowed=True), Router(clipped=True))
CAPABILITIES = ((5, 2), (6, 0), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (9, 0), (10, 0))
FOLDERS = ((), ("RMSNorm",), ("DecoderLayer", "RMSNorm"), ("DecoderLayerOfGPT2", "RMSNorm"))
REPOSITORIES = (HUB_FA2, HUB_FA3, HUB_FA4, KERNELS, "kernels-community/rotary", "kernels-community/activation")


class Chance:
    """Draws by name: a new name leaves the others as they were, and a new choice those where it does not win."""

    def __init__(self, number: int) -> None:
        self._number = number

    def part(self, name: str) -> float:
        digest = hashlib.blake2b(f"{self._number} {name}".encode(), digest_size=4).digest()
        return int.from_bytes(digest) / (1 << 32)

    def often(self, name: str, share: float) -> bool:
        return self.part(name) < share

    def of(self, name: str, several: Any) -> Any:
        return max(several, key=lambda one: self.part(f"{name} {one}"))


def model(chance: Chance) -> ModelFacts:
    """A model that exists, in some ways another."""
    base = facts(chance.of("model", MODELS))
    rows, columns = chance.of("rows", (0, 8, 32)), chance.of("columns", (16, 32, 64))
    changes = {
        "architecture": chance.of("architecture", ARCHITECTURES), "quantization": chance.of("packed", CHECKPOINTS),
        "kv_heads": base.heads, "head_dim": chance.of("head", (15, 16, 17)), "sinks": not base.sinks,
        "dtype": chance.of("format", ("bfloat16", "float16", "float32")), "experts": chance.of("experts", (0, 1, 8)),
        "counted_cache": chance.of("cache", CACHES), "vocab": base.vocab + 1, "random": not base.random,
        "fits_static": False, "fits_slots": False, "fits_pages": False, "step_waits": True,
        "shared_inputs": 0, "router": chance.of("router", ROUTERS),
        "layer_kinds": chance.of("layers", ((kind,) * base.layers for kind in ("full", "sliding", "fixed"))),
        "source": msgspec.structs.replace(base.source, kind="gguf"),
        "matrices": tuple(replace(m, rows=m.rows + rows, columns=m.columns + columns) for m in base.matrices),
    }  # fmt: skip
    return replace(
        base,
        **{
            name: new
            for name, new in changes.items()
            if chance.often(f"another {name}", {"quantization": 0.25, "router": 0.6}.get(name, 0.12))
        },
    )


def machine(chance: Chance) -> Machine:
    """With or without GPUs, packages, kernels, the Hub and other machines."""
    packages = {name: version for name, version in H200.packages if not chance.often(f"without {name}", 0.15)}
    gpus = chance.of("gpus", (0, 0, 1, 1, 1, 2, 4)) if chance.often("many", 0.5) else chance.of("gpu", (0, 1))
    card = Gpu(0, "a GPU", 80 * GIB, 79 * GIB, chance.of("capability", CAPABILITIES))
    return replace(
        CPU,
        cores=chance.of("cores", (1, 2, 8)),
        gpus=tuple(replace(card, index=index) for index in range(gpus)),
        packages=tuple(packages.items()),
        hub_offline=chance.often("offline", 0.5),
        hub_kernels=tuple(repository for repository in REPOSITORIES if chance.often(f"cached {repository}", 0.3)),
        avx512_bf16=chance.often("avx512", 0.4),
        zero_gpu=chance.often("zero", 0.08),
        kernel_layers=chance.of("folder", FOLDERS),
        hosts=1 + chance.often("far", 0.15),
        bfloat16=(FormatTime(1 << 30, 1, chance.of("slow", (1.0, 1.3, 2.0))),),
        memory_bytes=chance.of("memory", (4, 64)) * GIB,
        no_compiler="there is none" if chance.often("no compiler", 0.08) else "",
    )


RECORDED = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
CHOICES = {line.partition(" ")[0] for line in RECORDED}


def known(axis: Optimization) -> list[Choice]:
    """Those that were recorded; of an axis that was not, none."""
    return [choice for choice in axis.choices if f"{axis.name}={choice.name}" in CHOICES]


@functools.cache
def subject(number: int) -> Subject:
    """Each axis has its default, or any of its choices."""
    chance = Chance(number)
    choices = {axis.name: axis.default for axis in all_axes()}
    for axis in all_axes():
        if known(axis) and chance.often(f"set {axis.name}", 0.4):
            choices[axis.name] = chance.of(axis.name, [choice.name for choice in known(axis)])
    return Subject(model(chance), machine(chance), choices, chance.of("batch", (1, 2)), values(chance))


def values(chance: Chance) -> dict[str, dict[str, str]]:
    """By axis those of some keys that any of its choices takes."""
    drawn: dict[str, dict[str, str]] = {}
    for axis in all_axes():
        for key, several in {key: options for choice in axis.choices for key, options in choice.values.items()}.items():
            if chance.often(f"value {axis.name} {key}", 0.2):
                drawn.setdefault(axis.name, {})[key] = chance.of(f"{axis.name} {key}", several[1:])
    return drawn


@functools.cache
def told(axis: Optimization, name: str) -> list[tuple[Subject, list[Verdict]]]:
    """Each subject with the choice of that name, and its verdicts."""
    drawn = map(subject, range(DRAWS))
    with_it = [replace(one, choices={**one.choices, axis.name: name}) for one in drawn]
    return [(seen, axis.verdicts(name, seen)) for seen in with_it]


def outcome(axis: Optimization) -> list[str]:
    """A line for each thing that is told of a choice: what it is, and in how many draws."""
    lines: list[str] = []
    for choice in known(axis):
        counts: Counter[str] = Counter()
        for seen, verdicts in told(axis, choice.name):
            for verdict in verdicts:
                fix = f" ({', '.join('='.join(pair) for pair in sorted(verdict.fix.items()))})" if verdict.fix else ""
                becomes = f" {verdict.becomes}" if verdict.becomes else ""
                counts[f"{verdict.level}{becomes}{fix}: {re.sub('[0-9]+', '#', verdict.reason)[:64]}"] += 1
            if (resolved := axis.resolve(choice.name, seen)) != choice.name:
                counts[f"stands for {resolved}"] += 1
        title = f"{axis.name}={choice.name}"
        lines += [f"{title} in {count} draws {what}" for what, count in sorted(counts.items())] or [
            f"{title} has no rule"
        ]
    return lines


@pytest.mark.parametrize("axis", [axis for axis in all_axes() if known(axis)], ids=lambda axis: axis.name)
def test_rules_hold_where_they_were_recorded_to(axis: Optimization) -> None:
    assert outcome(axis) == [line for line in RECORDED if line.startswith(f"{axis.name}=")]


def test_every_recorded_choice_exists() -> None:
    assert {f"{axis.name}={choice.name}" for axis in all_axes() for choice in axis.choices} >= CHOICES


def test_every_rule_holds_in_some_draw() -> None:
    """Else none of these would notice that it is gone."""
    choices = [(axis, choice) for axis in all_axes() for choice in known(axis)]
    declared = {
        (axis.name, rule.reason) for axis, choice in choices for rule in choice.rules if isinstance(rule.reason, str)
    }
    held = {
        (axis.name, verdict.reason)
        for axis, choice in choices
        for _, verdicts in told(axis, choice.name)
        for verdict in verdicts
    }
    assert declared - held == set()


if __name__ == "__main__":
    CHOICES = {f"{axis.name}={choice.name}" for axis in all_axes() for choice in axis.choices}
    FILE.write_text("\n".join(line for axis in all_axes() for line in outcome(axis)) + "\n", encoding="utf-8")
