"""Ways to the Advise page: from the answer of Fit, and from Compare, with what they were about."""

from typing import Any

import gradio as gr
import msgspec

from tokendyno.backend.fit.device import THIS, is_size
from tokendyno.backend.hardware.gpu_specs import find_gpu
from tokendyno.ui.advise.page import NEW_TOKENS, PROMPT_TOKENS, AdviseControls
from tokendyno.ui.compare.page import ComparePage
from tokendyno.ui.components.events import FOCUS_RUN, QUIET
from tokendyno.ui.components.inputs import read_text, read_whole
from tokendyno.ui.errors import Updates, read_event, shows_errors
from tokendyno.ui.fit.page import FitControls
from tokendyno.ui.fit.request import read_amounts


class Arrival(msgspec.Struct):
    """What the browser sends: tokens of the context that the answer is for."""

    context: int


def advise_on_fit(fit: FitControls, advise: AdviseControls, pages: gr.Tabs) -> None:
    """Connect the button of Fit's answer: its context becomes a prompt and the tokens after it."""
    fields = advise.fields

    def seek(event: gr.EventData, model: object, gpu: object, amounts: object) -> Updates:
        context = max(2, read_event(event, Arrival, "This answer").context)
        card = read_text("The GPU", gpu).strip()
        new = min(NEW_TOKENS, context // 2)
        return {
            pages: gr.Tabs(selected="advise"),
            fields.model: read_text("The model", model).strip(),
            fields.gpu: THIS if is_size(card) or card.casefold() == THIS else find_gpu(card).name,
            fields.memory: card if is_size(card) else "",
            fields.prompt: "",
            fields.prompt_tokens: context - new,
            fields.new_tokens: new,
            fields.batch: read_whole("Batch size", read_amounts(amounts).batch),
            advise.message: "",
            fit.message: "",
        }

    outputs = [pages, *fields, advise.message, fit.message]
    sought = fit.result.seek(shows_errors(fit.message)(seek), [fit.model, fit.gpu, fit.amounts], outputs, **QUIET)
    sought.success(None, None, None, js=FOCUS_RUN, **QUIET)


def advise_on_compare(compare: ComparePage, advise: AdviseControls, pages: gr.Tabs) -> None:
    """Connect the button below Compare's answer: model, prompt, lengths and batch are those of both arms."""

    def seek(model: object, prompt: object, tokens: object, new: object, batch: object) -> list[Any]:
        text = ["", tokens] if tokens else [prompt, PROMPT_TOKENS]
        return [gr.Tabs(selected="advise"), model, *text, new, batch, ""]

    work, fields = compare.work, advise.fields
    inputs = [work.model, work.prompt, work.prompt_tokens, work.max_new_tokens, work.batch_size]
    outputs = [fields.model, fields.prompt, fields.prompt_tokens, fields.new_tokens, fields.batch, advise.message]
    sought = compare.to_advise.click(seek, inputs, [pages, *outputs], **QUIET)
    sought.success(None, None, None, js=FOCUS_RUN, **QUIET)
