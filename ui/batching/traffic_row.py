"""The traffic of both arms: model, requests and limits, with the buttons that start and stop a run."""

from collections.abc import Sequence
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
    preset: gr.Dropdown
    run: gr.Button
    stop: gr.Button
    summary: SettingChips


def traffic_row(offered: Sequence[CatalogueEntry], runs: bool) -> TrafficRow:
    """Build the first rows of the page. `offered`: models to choose from; `runs`: whether anything is run."""
    first = traffic_presets()[0]
    start: dict[str, Any] = draw_values(first.draw)
    made: dict[str, Any] = {}

    def number(field: str, label: str, value: float | None = None) -> None:
        made[field] = number_input(label, start[field] if value is None else value, f"batch-{field.replace('_', '-')}")

    with gr.Row(elem_id="batch-work", elem_classes=["td-work"], equal_height=True):
        made["model"] = model_input(offered, "batch-model")
        preset = gr.Dropdown(
            [(preset.title, preset.name) for preset in traffic_presets()],
            value=first.name,
            label="Traffic",
            min_width=170,
            scale=2,
            elem_id="traffic-preset",
        )
        number("requests", "Requests")
        number("concurrent", "Concurrency", first.concurrent)
        number("ttft_limit_s", "TTFT limit, s", TTFT_LIMIT_S)
        run = gr.Button("Run", variant="primary", interactive=runs, elem_id="batch-run", min_width=84, scale=1)
        stop = gr.Button("Stop", interactive=False, elem_id="batch-stop", min_width=84, scale=1)
        more = gr.Button("More", elem_id="batch-more-button", min_width=64, scale=1)
    summary = SettingChips("traffic-summary", "")
    with gr.Column(elem_id="batch-more"):
        with gr.Row(elem_classes=["td-work"]):
            number("prompt_low", "Prompt tokens, from")
            number("prompt_high", "to")
            number("new_low", "New tokens, from")
            number("new_high", "to")
            made["arrival"] = gr.Dropdown(
                [(title, name) for name, title in ARRIVALS.items()],
                value=start["arrival"],
                label="Requests arrive",
                min_width=140,
                elem_id="batch-arrival",
            )
            number("rate", "Requests a second")
            number("burst", "Requests in a burst")
            number("seed", "Seed", 1)
        with gr.Row(elem_classes=["td-work"]):
            number("long_percent", "Long prompts, %")
            number("long_low", "Tokens of long prompts, from")
            number("long_high", "to")
            number("pages", "KV pages (0: enough)", 0)
            number("token_limit_ms", "Limit per token, ms", 0)
            number("request_limit_s", "Limit per request, s", 0)
            made["ignore_eos"] = gr.Checkbox(True, label="Ignore EOS", elem_id="batch-ignore-eos", min_width=110)
        with gr.Row(elem_classes=["td-work"]):
            made["trace"] = gr.Textbox(
                "",
                label="A list of requests instead: JSON Lines, or the path of such a file",
                placeholder='{"arrival_s": 0.5, "prompt_tokens": 64, "max_new_tokens": 128}',
                lines=1,
                max_lines=6,
                min_width=240,
                scale=5,
                elem_id="batch-trace",
            )
            made["seconds"], made["price"] = pairs_inputs("batch-")
    summary.watch(made)
    names = [*draw_values(first.draw), "concurrent", "trace"]
    known = {one.name: [*draw_values(one.draw).values(), one.concurrent, ""] for one in traffic_presets()}
    fills(preset, [made[name] for name in names], known)
    unfolds(more, "batch-more")
    return TrafficRow({field: made[field] for field in Fields._fields}, preset, run, stop, summary)
