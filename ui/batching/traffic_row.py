"""The traffic of both arms: model, requests and limits, with the buttons that start and stop a run."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gradio as gr

from tokendyno.backend.models.catalogue import CatalogueEntry
from tokendyno.backend.traffic.presets import traffic_presets
from tokendyno.ui.batching.request import ARRIVALS, Fields, draw_values
from tokendyno.ui.components.events import fills, unfolds
from tokendyno.ui.components.inputs import model_input, number_input, pairs_inputs
from tokendyno.ui.components.setting_chips import SettingChips

TTFT_LIMIT_S = 1.0
"""The limit for goodput at first; 0 turns it off."""


class TrafficRow(NamedTuple):
    """The controls by field, in the order of `request.Fields`, the buttons, and the line that words the traffic."""

    fields: dict[str, Any]
    run: gr.Button
    stop: gr.Button
    summary: SettingChips


def traffic_row(offered: Sequence[CatalogueEntry], runs: bool) -> TrafficRow:
    """Build the first rows of the page. `offered`: models to choose from; `runs`: whether anything is run."""
    presets = traffic_presets()
    first = presets[0]
    start = draw_values(first.draw) | {"concurrent": first.concurrent, "ttft_limit_s": TTFT_LIMIT_S, "seed": 1}
    fields: dict[str, Any] = {}
    with gr.Row(elem_id="batch-work", elem_classes=["td-work"], equal_height=True):
        fields["model"] = model_input(offered, "batch-model")
        preset = gr.Dropdown(
            [(preset.title, preset.name) for preset in presets],
            value=first.name,
            label="Traffic",
            min_width=170,
            scale=2,
            elem_id="traffic-preset",
        )
        fields |= _numbers(start, requests="Requests", concurrent="Concurrency", ttft_limit_s="TTFT limit, s")
        run = gr.Button("Run", variant="primary", interactive=runs, elem_id="batch-run", min_width=84, scale=1)
        stop = gr.Button("Stop", interactive=False, elem_id="batch-stop", min_width=84, scale=1)
        more = gr.Button("More", elem_id="batch-more-button", min_width=64, scale=1)
    summary = SettingChips("traffic-summary", "")
    with gr.Column(elem_id="batch-more"):
        fields |= _more_fields(start)
    summary.watch(fields)
    names = [*draw_values(first.draw), "concurrent", "trace"]
    filled = {preset.name: [*draw_values(preset.draw).values(), preset.concurrent, ""] for preset in presets}
    fills(preset, [fields[name] for name in names], filled)
    unfolds(more, "batch-more")
    return TrafficRow({name: fields[name] for name in Fields._fields}, run, stop, summary)


def _more_fields(start: Mapping[str, Any]) -> dict[str, Any]:
    """The controls behind "More": how requests are drawn, their limits, a list of them, and the pairs of runs."""
    fields: dict[str, Any] = {}
    with gr.Row(elem_classes=["td-work"]):
        fields |= _numbers(start, prompt_low="Prompt tokens, from", prompt_high="to")
        fields |= _numbers(start, new_low="New tokens, from", new_high="to")
        fields["arrival"] = gr.Dropdown(
            [(title, name) for name, title in ARRIVALS.items()],
            value=start["arrival"],
            label="Requests arrive",
            min_width=140,
            elem_id="batch-arrival",
        )
        fields |= _numbers(start, rate="Requests a second", burst="Requests in a burst", seed="Seed")
    with gr.Row(elem_classes=["td-work"]):
        fields |= _numbers(
            start, long_percent="Long prompts, %", long_low="Tokens of long prompts, from", long_high="to"
        )
        fields |= _numbers(start, pages="KV pages (0: enough)")
        fields |= _numbers(start, token_limit_ms="Limit per token, ms", request_limit_s="Limit per request, s")
        fields["ignore_eos"] = gr.Checkbox(True, label="Ignore EOS", elem_id="batch-ignore-eos", min_width=110)
    with gr.Row(elem_classes=["td-work"]):
        fields["trace"] = gr.Textbox(
            "",
            label="A list of requests instead: JSON Lines, or the path of such a file",
            placeholder='{"arrival_s": 0.5, "prompt_tokens": 64, "max_new_tokens": 128}',
            lines=1,
            max_lines=6,
            min_width=240,
            scale=5,
            elem_id="batch-trace",
        )
        fields["seconds"], fields["price"] = pairs_inputs("batch-")
    return fields


def _numbers(start: Mapping[str, Any], **labels: str) -> dict[str, Any]:
    """Number inputs, by field; one without a value in `start` is 0."""
    return {
        field: number_input(label, start.get(field, 0), f"batch-{field.replace('_', '-')}")
        for field, label in labels.items()
    }
