"""Errors of event handlers reach the page as one sentence."""

import logging

import gradio as gr
import pytest

from tokendyno.backend.errors import InputError
from tokendyno.ui.errors import UNEXPECTED, shows_errors

SECRET = "hf_" + "AbCdEfGh" * 4


def outcome(error: Exception) -> object:
    with gr.Blocks(analytics_enabled=False):
        message, other = gr.HTML(""), gr.HTML("")

    @shows_errors(message)
    def handler() -> dict[object, object]:
        if error.args:
            raise error
        return {other: "fine"}

    updates = handler()
    assert len(updates) == 1
    return updates.get(message, updates.get(other))


def test_bad_input_is_said_in_its_own_words_without_secrets() -> None:
    assert outcome(InputError(f"No model {SECRET}. Choose one.")) == "No model [redacted]. Choose one."


def test_any_other_error_is_one_sentence_and_logged_without_secrets(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        assert outcome(RuntimeError(f"boom {SECRET}")) == UNEXPECTED
    assert "Traceback" in caplog.text and "boom" in caplog.text and SECRET not in caplog.text


def test_what_works_is_left_alone() -> None:
    assert outcome(RuntimeError()) == "fine"


def test_a_handler_with_nothing_to_update_returns_an_update_all_the_same() -> None:
    """Gradio answers an empty dict with HTTP 500."""
    with gr.Blocks(analytics_enabled=False):
        message = gr.HTML("")
    assert shows_errors(message)(dict)() == {message: gr.skip()}
