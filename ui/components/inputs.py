"""Inputs shared by pages, and how their values are read. Every value is untrusted: a raw POST may hold anything."""

from collections.abc import Sequence

import gradio as gr

from tokendyno.backend.config import RANGES, UNTIL_S, check_range, checked_price
from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.models import DEFAULT_MODEL
from tokendyno.backend.models.catalogue import CatalogueEntry

MOST_SECONDS = 3_600
MOST_TEXT_BYTES = 65_536


def model_input(offered: Sequence[CatalogueEntry], elem_id: str = "model") -> gr.Dropdown:
    """Models of the catalogue; anything else may be typed."""
    names = [entry.name for entry in offered]
    return gr.Dropdown(
        [(f"{entry.name}: {entry.title}", entry.name) for entry in offered],
        value=DEFAULT_MODEL if DEFAULT_MODEL in names or not names else names[0],
        label="Model",
        allow_custom_value=True,
        min_width=200,
        scale=3,
        elem_id=elem_id,
    )


def number_input(label: str, value: float, elem_id: str) -> gr.Number:
    """A number. It is checked on the server, with a message: limits in the browser would change it silently."""
    return gr.Number(value, label=label, min_width=90, scale=1, elem_id=elem_id)


def read_text(label: str, value: object) -> str:
    """A text, or an InputError that names its input."""
    if not isinstance(value, str):
        raise InputError(f"{label} is missing. Enter or choose one.")
    return value


def read_own_text(value: object) -> str:
    """What a user pasted, "" for nothing, or an InputError."""
    text = read_text("Your own text", value)
    if len(text.encode()) > MOST_TEXT_BYTES:
        raise InputError(f"Your own text has {len(text.encode()):,} bytes, over the limit of 65,536. Shorten it.")
    return text


def read_number(label: str, value: object) -> float:
    """A number, possibly infinite, or an InputError that names its input."""
    if value is None or value == "":
        raise InputError(f"{label} is empty. Enter a number.")
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise InputError(f"{label} is {shown(value)!r}. Enter a number.")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{label} is {shown(value)}. Enter a smaller one.") from None


def pairs_inputs(elem_id: str) -> tuple[gr.Number, gr.Number]:
    """How long pairs of runs may take until they decide, and what an hour of the machine costs."""
    seconds = number_input("Seconds of pairs, at most", UNTIL_S, f"{elem_id}seconds")
    return seconds, number_input("Price of the machine an hour", 0, f"{elem_id}price")


def read_seconds(value: object) -> float:
    """Of pairs of runs, or an InputError."""
    seconds = read_number("Seconds", value)
    if not 0 < seconds <= MOST_SECONDS:
        raise InputError(f"Seconds is {seconds:g}; it must be above 0, and at most {MOST_SECONDS:,}.")
    return seconds


def read_price(value: object) -> float:
    """Of an hour of the machine, or an InputError."""
    return checked_price(read_number("The price of an hour", value))


def read_whole(label: str, value: object, low: int | None = None, high: int | None = None) -> int:
    """A whole number in a range, or an InputError that names its input."""
    number = read_number(label, value)
    if number in (float("inf"), float("-inf")) or number != int(number):
        raise InputError(f"{label} is {shown(value)}. Enter a whole number.")
    if low is not None:
        check_range(label, int(number), low, high)
    return int(number)


def read_work(label: str, value: object, field: str) -> int:
    """A whole number of a workload, or an InputError that names its input."""
    return read_whole(label, value, *RANGES[field])
