"""Reads requests from a JSON Lines file: one request a line, bad lines refused by their number."""

from pathlib import Path

import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.redact import error_text
from tokendyno.backend.traffic.requests import MAX_REQUESTS, TrafficRequest, check_request

MAX_TRACE_BYTES = 16 << 20
"""Eight bytes for each token that all requests may have together."""
_EXAMPLE = '{"arrival_s": 0.5, "prompt_tokens": 64, "max_new_tokens": 128}'


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    max_new_tokens: int
    arrival_s: float = 0.0
    prompt_tokens: int = 0
    prompt: str = ""
    token_ids: list[int] = []


def read_trace(path: Path) -> list[TrafficRequest]:
    """The requests of a file in the order of their arrival. Empty lines are skipped. InputError names the line."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_TRACE_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"The trace {path} cannot be read ({error.strerror}). Name a JSON Lines file, one request a line."
        ) from error
    if len(data) > MAX_TRACE_BYTES:
        raise InputError(f"The trace {path} has more than {MAX_TRACE_BYTES:,} bytes. Shorten it.")
    return parse_trace(data, f"The trace {path.name}")


def parse_trace(data: bytes, name: str) -> list[TrafficRequest]:
    """The requests of a text, one a line, in the order of their arrival. `name`: what an InputError calls the text."""
    requests = []
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            requests.append(_request(line, f"{name}, line {number:,}", number))
        if len(requests) > MAX_REQUESTS:
            raise InputError(f"{name} has more than {MAX_REQUESTS:,} requests. Shorten it.")
    if not requests:
        raise InputError(f"{name} has no requests. Write one a line, such as {_EXAMPLE}.")
    return sorted(requests, key=lambda request: request.arrival_s)


def _request(line: bytes, name: str, number: int) -> TrafficRequest:
    try:
        fields = msgspec.structs.asdict(msgspec.json.decode(line, type=_Line))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{name} cannot be read: {error_text(error)}. Write a request such as {_EXAMPLE}.") from None
    request = TrafficRequest(**fields, seed=number)
    check_request(request, name)
    return request
