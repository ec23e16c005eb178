"""The values of the Fit page's controls as a table. Every value is untrusted: a raw POST may hold anything."""

from typing import NamedTuple

import gradio as gr
import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import UNDECODABLE, InputError
from tokendyno.backend.fit.device import device_of, is_size
from tokendyno.backend.fit.table import Fit, fit_facts
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.ui.components.inputs import read_text, read_whole, read_work
from tokendyno.ui.errors import read_event


class Amounts(msgspec.Struct):
    """What the sliders hold: tokens of context (None: the default for the model) and sequences in a batch. What was
    typed may be anything."""

    context: object = None
    batch: object = 1


class FitAnswer(NamedTuple):
    """A table, and what was changed of the request: a sentence, or ""."""

    fit: Fit
    lowered: str


class Taken(msgspec.Struct):
    """What the browser sends when a row's "Run this" was pressed."""

    choices: dict[str, str]


def read_amounts(value: object) -> Amounts:
    """The sliders' value, which is JSON."""
    try:
        return msgspec.json.decode(read_text("The context", value), type=Amounts)
    except UNDECODABLE as error:
        raise InputError("Context and batch size cannot be read. Reload the page.") from error


def write_amounts(context: int | None, batch: int) -> str:
    """The sliders' value."""
    return msgspec.json.encode(Amounts(context, batch)).decode()


def find(bench: Bench, model: object, gpu: object, amounts: object, gpus: object = 1) -> FitAnswer:
    """The table for the values of the controls. A context beyond the model's positions is lowered to them."""
    name = read_text("The model", model).strip()
    card = read_text("The GPU", gpu).strip()
    sliders = read_amounts(amounts)
    machine, freeable_bytes = hardware.detect(), bench.freeable_bytes  # by workers that would end
    device = device_of(machine, vram=card) if is_size(card) else device_of(machine, card, freeable_bytes=freeable_bytes)
    tokens = None if sliders.context is None else read_whole("Context", sliders.context, 1)
    sequences, count = read_work("Batch size", sliders.batch, "batch_size"), read_whole("GPUs", gpus, 1)
    facts = bench.facts(name)
    lowered = ""
    if tokens is not None and tokens > facts.max_positions:
        lowered = f"{facts.label} has {facts.max_positions:,} positions: the context of {tokens:,} was lowered to that."
        tokens = facts.max_positions
    return FitAnswer(fit_facts(facts, device, tokens, sequences, count, bench.obstacle(facts)), lowered)


def read_taken(event: gr.EventData) -> dict[str, str]:
    """The choices of a row whose "Run this" was pressed, by axis."""
    choices = read_event(event, Taken, "This row").choices
    known = {axis.name: {choice.name for choice in axis.choices} for axis in prompt_axes()}
    if not all(choice in known.get(axis, ()) for axis, choice in choices.items()):
        raise InputError("This row cannot be read. Reload the page.")
    return choices
