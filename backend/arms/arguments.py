"""An arm in transformers' own terms: what `from_pretrained` and `generate` get, from its script's parts."""

import re
from collections.abc import Mapping

import msgspec

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import Optimization, all_axes, subject_of
from tokendyno.backend.plan import BatchPlan, LoadPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import quoted

NO_ARGUMENT = "no argument of transformers"
ALREADY = "no argument: this model has it anyway"

_CHECKPOINT_DTYPE = re.compile(r"AutoConfig\.from_pretrained\(MODEL[^)]*\)\.dtype")


class Arguments(msgspec.Struct, frozen=True):
    """Arguments as Python source.

    then    calls of transformers and torch after the load
    called  what generates: `generate`, or what stands in its place
    own     choices that take code of tokendyno, since transformers has no argument for them, as axis=choice
    """

    from_pretrained: list[str]
    then: list[str]
    called: str
    generate: list[str]
    own: list[str]

    def lines(self) -> list[str]:
        """Two sentences for people."""
        load = [f"from_pretrained gets {_listed(self.from_pretrained)}", *(f"then {call}" for call in self.then)]
        load += [f"by code of tokendyno, without an argument: {', '.join(self.own)}"] if self.own else []
        return ["; ".join(load), f"{self.called} gets {_listed(self.generate)}"]


def _listed(arguments: list[str]) -> str:
    return ", ".join(arguments) or "no arguments"


def parts_of(checked: Checked) -> Script:
    """The parts of an arm's script, as its axes fill them in."""
    parts, load = Script(), checked.plan.load
    if load.device != "cpu" and load.loading != "plain":
        parts.load["device_map"] = "DEVICE"
    if load.source.kind == "random":
        parts.define("worker/load/random_weights.py", "initialize", "byte_tokenizer")
    for axis in all_axes():
        axis.write(parts, checked.plan)
    return parts


def arguments_of(checked: Checked) -> Arguments:
    """What the calls of an arm get."""
    parts, plan, facts = parts_of(checked), checked.plan, checked.facts
    called, keywords = "generate", sampling(checked.workload)
    if plan.generate.batch.continuous:
        called, keywords = "generate_batch", _batching(continuous_settings(plan.generate.batch))
    elif facts.kind == "encoder":
        called, keywords = "forward", {"use_cache": "False"} if facts.source.forward else {}
    elif parts.loop:
        called, keywords = f"in place of generate, tokendyno's {_one_line(parts.loop)}", {}
    if parts.cache and not plan.generate.batch.continuous:
        keywords["past_key_values"] = parts.cache
    if keeps_uncompiled(plan) and called == "generate":
        keywords["disable_compile"] = "True"
    if not plan.generate.cache.fixed and (compiled := parts.generate.pop("compile_config", "")):
        start = "torch.compile(model, " if facts.kind == "encoder" else "model.compile("
        parts.patch.append(_named(parts)[compiled].replace("CompileConfig(", start))
    loads = _shown(parts, parts.load | parts.shown, facts, plan)
    generates = _shown(parts, keywords | parts.generate, facts, plan)
    return Arguments(loads, _calls(parts, plan), called, generates, _own(checked))


def sampling(work: Workload) -> dict[str, str]:
    """Keywords of `generate`: a checkpoint's own settings, which may sample, do not count."""
    if not work.temperature:
        return {"do_sample": "False"}
    temperature, top_p = repr(float(work.temperature)), repr(float(work.top_p))
    return {"do_sample": "True", "temperature": temperature, "top_k": str(work.top_k), "top_p": top_p}


def keeps_uncompiled(plan: Plan) -> bool:
    """Whether `generate` must be told not to compile: on a GPU it does by default with a static cache."""
    return plan.load.device == "cuda" and plan.generate.cache.static and plan.generate.compile_mode is None


def continuous_settings(batch: BatchPlan) -> dict[str, str]:
    """Arguments of transformers' `ContinuousBatchingConfig` but for sizes that depend on the requests."""
    return {
        "page_size": str(batch.page_tokens),
        "max_batch_tokens": str(batch.step_tokens),
        **({"max_requests_per_batch": str(batch.rows)} if batch.rows else {}),
        "scheduler_type": quoted(batch.scheduler),
        "use_async_batching": str(batch.asynchronous),
        "use_cuda_graph": str(batch.graphs),
        "allow_block_sharing": "False",
        "auto_switch_to_flash": "False",
    }


def _batching(settings: Mapping[str, str]) -> dict[str, str]:
    listed = ", ".join(f"{name}={value}" for name, value in settings.items())
    return {"continuous_batching_config": f"ContinuousBatchingConfig({listed})"}


def argument_of(axis: Optimization, choice: str, facts: ModelFacts, machine: Machine) -> str:
    """The arguments and calls of one choice alone, as Python source."""
    parts, default = Script(), Plan(LoadPlan(facts.source, device=machine.device))
    plan = axis.edit(default, choice, subject_of(facts, machine, {axis.name: choice}))
    axis.write(parts, plan)
    keywords = parts.load | parts.shown | parts.generate
    if parts.cache and not parts.loop:
        keywords["past_key_values"] = parts.cache
    before, after = continuous_settings(default.generate.batch), continuous_settings(plan.generate.batch)
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    if changed or plan.generate.batch.continuous:
        keywords |= _batching(changed)
    texts = [*_shown(parts, keywords, facts, plan), *_calls(parts, plan)]
    return ", ".join(texts) or (ALREADY if plan == default else NO_ARGUMENT)


def _named(parts: Script) -> dict[str, str]:
    """What the script gives a name before it is passed."""
    lines = [*parts.prepare, *parts.patch, *parts.inputs]
    return dict(line.split(" = ", 1) for line in lines if re.match(r"\w+ = ", line))


def _one_line(source: str) -> str:
    return re.sub(r",? \)", ")", re.sub(r"\s+", " ", source).replace("( ", "(")).replace("'", '"')


def _shown(parts: Script, keywords: Mapping[str, str], facts: ModelFacts, plan: Plan) -> list[str]:
    """Keywords on one line each, with what a name of the script stands for in its place."""
    named, texts = _named(parts), []
    for name, value in keywords.items():
        text = _one_line(named.get(value, value)).replace("DEVICE", quoted(plan.load.device))
        text = _CHECKPOINT_DTYPE.sub(f"torch.{facts.dtype}", text)
        settings = [
            line.partition(".")[2].split("  #")[0].replace(" = ", "=")
            for line in parts.patch
            if line.startswith(f"{name}.")
        ]
        texts.append(" with ".join([f"{name}={text}", *settings]))
    return texts


def _calls(parts: Script, plan: Plan) -> list[str]:
    """Calls of transformers and torch after the load."""
    calls = [line for line in parts.patch if line.startswith(("model.", "torch.compile("))]
    return [line.partition("  #")[0].replace("DEVICE", quoted(plan.load.device)) for line in calls]


def _own(checked: Checked) -> list[str]:
    """Choices whose part of the script is code of tokendyno, or more than arguments."""
    own = []
    for axis in all_axes():
        choice, parts = checked.planned[axis.name], Script()
        axis.write(parts, checked.plan)
        arguments = parts.load or parts.generate or parts.cache or _calls(parts, checked.plan)
        code = [*parts.prepare, *parts.patch, *parts.inputs, *parts.forward]
        if choice == axis.default or parts.loop or parts.shown:
            continue
        if parts.definitions or (code and not arguments):
            own.append(f"{axis.name}={choice}")
    return own
