"""The first rows of the Compare page: what both arms work on, and the buttons that start and stop it."""

import gradio as gr

from backend.presets import prompts
from ui import controls
from ui.calm import Updates
from ui.controls import WorkControls
from ui.words import words


def work_row() -> tuple[WorkControls, gr.Button, gr.Button, gr.Button, gr.HTML]:
    """The controls, the buttons Run, Measure and Stop, and the line that tells the model's facts."""
    first = prompts()[0]
    with gr.Row(elem_id="work", elem_classes=["td-work"], equal_height=True):
        model = controls.model_control()
        preset = controls.prompt_preset_control()
        prompt = controls.prompt_control()
        tokens = controls.number_control("New tokens", first.max_new_tokens, "max-new-tokens")
        run_button = gr.Button("Run", variant="primary", elem_id="run", min_width=84, scale=1)
        measure_button = gr.Button("Measure", elem_id="measure", min_width=84, scale=1)
        stop_button = gr.Button("Stop", interactive=False, elem_id="stop", min_width=84, scale=1)
    facts = words("facts", classes="td-facts")
    with gr.Accordion("More: batch, sampling, repeats, synthetic prompt, chat", open=False, elem_id="more"):
        with gr.Row(elem_classes=["td-work"]):
            batch = controls.number_control("Batch size", 1, "batch-size")
            temperature = controls.number_control("Temperature (0: greedy)", 0, "temperature")
            seed = controls.number_control("Seed", 0, "seed")
            repeats = controls.number_control("Repeats", 1, "repeats")
            length = controls.number_control("Prompt tokens (0: as written)", 0, "prompt-tokens")
            ignore = gr.Checkbox(
                prompts()[0].ignore_eos, label="Ignore the end of text", elem_id="ignore-eos", min_width=140
            )
        with gr.Row(elem_classes=["td-work"]):
            top_k = controls.number_control("Top k (0: all)", 0, "top-k")
            top_p = controls.number_control("Top p (1: all)", 1, "top-p")
            chat = gr.Checkbox(False, label="Chat template", elem_id="chat", min_width=140)
            effort = controls.effort_control()
    work = WorkControls(
        model, prompt, tokens, batch, temperature, seed, repeats, length, ignore, top_k, top_p, chat, effort
    )

    def choose_prompt(name: object) -> Updates:
        chosen = next((p for p in prompts() if p.name == name), None)
        return {} if chosen is None else {
            work.prompt: chosen.text, work.max_new_tokens: chosen.max_new_tokens,
            work.prompt_tokens: chosen.prompt_tokens, work.ignore_eos: chosen.ignore_eos,
        }  # fmt: skip

    # "select", not "input": Gradio sends the latter whenever the focus leaves the list
    preset.select(choose_prompt, preset, [work.prompt, work.max_new_tokens, work.prompt_tokens, work.ignore_eos],
                 show_progress="hidden", queue=False, api_visibility="private")  # fmt: skip
    return work, run_button, measure_button, stop_button, facts
