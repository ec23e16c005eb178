"""From the values of the controls to a `Request`, and back, and what was edited since a run. Every value is untrusted:
a raw POST may hold anything."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.arms.bundles import bundle, grant
from tokendyno.backend.arms.check import prompt_tokens
from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.config import (
    LEAST_PAIRS,
    MOST_PAIRS,
    ArmRequest,
    Request,
    Workload,
    check_temperature,
    check_top_p,
)
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import Machine
from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.backend.quality.texts import YOURS, passages
from tokendyno.ui.components.axis_values import choices_of, values_of
from tokendyno.ui.components.inputs import read_number, read_own_text, read_price, read_seconds, read_text, read_work
from tokendyno.ui.components.stale_line import changed_since

ARMS = ("A", "B")
CUSTOM = "custom"
"""The preset that is shown when the choices match none."""
NO_CHOICE = "baseline"
"""The preset of the defaults."""


class Fields(NamedTuple):
    """Values of the controls, untrusted, in the order in which events pass them; the axes of arm A and of arm B follow,
    then the presets that the arms show. Or the controls themselves (`work_row.WorkControls`)."""

    model: Any
    prompt: Any
    max_new_tokens: Any
    batch_size: Any
    temperature: Any
    seed: Any
    seconds: Any
    price: Any
    prompt_tokens: Any
    ignore_eos: Any
    top_k: Any
    top_p: Any
    chat: Any
    system: Any
    reasoning_effort: Any
    text: Any


def read_request(values: Sequence[object], need_prompt: bool = True) -> Request:
    """The request, or an InputError that names the control. `need_prompt`: an empty prompt is one."""
    fields, arm_values = Fields(*values[: len(Fields._fields)]), values[len(Fields._fields) :]
    model = read_text("The model", fields.model).strip()
    prompt, prompt_tokens = (
        read_text("The prompt", fields.prompt),
        read_work("Prompt tokens", fields.prompt_tokens, "prompt_tokens"),
    )
    if not need_prompt and not prompt.strip() and not prompt_tokens:
        prompt = "?"
    temperature, top_p = read_number("Temperature", fields.temperature), read_number("Top p", fields.top_p)
    check_temperature("Temperature", temperature)
    check_top_p("Top p", top_p)
    workload = Workload(
        prompt=prompt,
        prompt_tokens=prompt_tokens,
        max_new_tokens=read_work("New tokens", fields.max_new_tokens, "max_new_tokens"),
        batch_size=read_work("Batch size", fields.batch_size, "batch_size"),
        temperature=temperature,
        seed=read_work("Seed", fields.seed, "seed"),
        repeats=MOST_PAIRS,
        ignore_eos=bool(fields.ignore_eos),
        top_k=read_work("Top k", fields.top_k, "top_k"),
        top_p=top_p,
        chat=bool(fields.chat),
        system=read_text("The system message", fields.system),
        reasoning_effort=read_text("Reasoning effort", fields.reasoning_effort),
    )
    seconds, price = read_seconds(fields.seconds), read_price(fields.price)
    own_text = read_own_text(fields.text)
    reading = passages(YOURS, own_text) if own_text.strip() else []
    return Request(model, read_arms(arm_values), workload, until_s=seconds, reading=reading, price_per_hour=price)


def read_draft(values: Sequence[object]) -> tuple[Request, str]:
    """The request, and what keeps it from being run, "" if nothing: arms are checked before the prompt is written."""
    try:
        return read_request(values), ""
    except InputError as error:
        return read_request(values, need_prompt=False), str(error)


def read_arms(values: Sequence[object]) -> list[ArmRequest]:
    """Each arm, from the axes of all arms; the presets that the arms show may follow, and more."""
    width = len(prompt_axes())
    presets = values[len(ARMS) * width :][: len(ARMS)] or [""] * len(ARMS)
    choices = [read_choices(values[i * width : (i + 1) * width]) for i in range(len(ARMS))]
    bundles = [name if isinstance(name, str) and bundle(name) else "" for name in presets]
    return [ArmRequest(*arm) for arm in zip(ARMS, choices, bundles, strict=True)]


def within(request: Request, limits: Limits) -> Request:
    """The request with no more pairs than a visitor may ask for, but two at least."""
    work = request.workload
    pairs = min(work.repeats, limits.repeats or work.repeats)
    if limits.run_tokens is not None:
        if request.traffic is None:
            tokens = len(request.arms) * work.batch_size * (prompt_tokens(work) + work.max_new_tokens)
        else:
            tokens = len(request.arms) * sum(each.tokens + each.max_new_tokens for each in request.traffic.requests)
        pairs = min(pairs, limits.run_tokens // tokens)
    return msgspec.structs.replace(request, workload=replace(work, repeats=max(LEAST_PAIRS, pairs)))


def read_choices(values: Sequence[object]) -> dict[str, str]:
    """The choices of an arm that differ from the default, by axis."""
    return choices_of(prompt_axes(), values)


def choice_values(choices: dict[str, str]) -> list[str]:
    """One value for each axis, its default where nothing was chosen."""
    return values_of(prompt_axes(), choices)


def preset_choices(name: str, facts: ModelFacts | None = None, machine: Machine | None = None) -> dict[str, str]:
    """The choices of an arm preset; of a bundle those that this model and machine can run, if they are given."""
    for preset in arm_presets():
        if preset.name == name:
            if facts is None or machine is None:
                return preset.choices
            return dict(grant(preset, facts, machine, Workload(prompt="?")).choices)
    raise InputError(f"There is no preset {name!r}. Choose one from the list.")


def matching_preset(
    choices: dict[str, str], shown: str = "", facts: ModelFacts | None = None, machine: Machine | None = None
) -> str:
    """The preset that comes to exactly these choices, or `CUSTOM`; of several the one that is shown, else one that is
    no bundle."""
    presets = sorted(arm_presets(), key=lambda preset: (preset.name != shown, preset.bundle))
    return next((p.name for p in presets if preset_choices(p.name, facts, machine) == choices), CUSTOM)


def written(arms: Sequence[ArmRequest], presets: Sequence[str], first: Sequence[str]) -> list[str]:
    """The arms as the page's address names them: as on the command line, where "" has no choice; none where both are
    as the page opens, which differs from machine to machine. `presets`: that come to them; `first`: as it opens."""
    if tuple(presets) == tuple(first):
        return [""] * len(arms)
    texts = [preset if bundle(preset) else arm_text(arm.choices) for arm, preset in zip(arms, presets, strict=True)]
    return texts if any(texts) else [NO_CHOICE, *texts[1:]]


def changed(ran: Request, request: Request) -> list[str]:
    """What was edited since that run. The texts of a reading are no workload that the page shows."""
    before, now = ran.workload, replace(request.workload, repeats=ran.workload.repeats)
    workload = ["the prompt"] if before.prompt != now.prompt else []
    workload += ["the workload"] if replace(before, prompt="?") != replace(now, prompt="?") else []
    return changed_since(ran, request, workload if ran.quality is None else [])
