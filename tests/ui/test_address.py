"""What an address asks for; anything else in it is left alone."""

from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import pytest

from tokendyno.ui.address import Address, read_address


def read(**query: str) -> Address:
    request: Any = SimpleNamespace(query_params=query)
    return read_address(cast(gr.Request, request))


def test_an_address_names_page_model_device_and_amounts() -> None:
    address = read(view="fit", model="gpt2", gpu="T4", gpus="2", context="4096", batch="8", run="abc")
    assert address == Address("fit", "gpt2", "T4", 2, 4_096, 8)
    assert read() == read(run="abc") == Address()
    assert read(a="cache=static", b="lowest-latency") == Address(a="cache=static", b="lowest-latency")
    assert read(tokens="160", batch_size="4") == Address(tokens=160, batch_size=4)
    assert read(prompt_tokens="500", batch_size="many") == Address(prompt_tokens=500)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "4k", "\u0661", "9" * 16, "", " 1", "1e3"])
def test_numbers_that_are_none_are_not_asked_for(text: str) -> None:
    assert read(context=text, batch=text, gpus=text) == Address()


def test_what_is_too_long_or_unknown_goes_no_further() -> None:
    assert read(view="admin", batch="5000").batch is None and read(view="admin").page == ""
    assert len(read(model="x" * 10_000).model) == 300 and len(read(b="x" * 10_000).b) == 2_000
