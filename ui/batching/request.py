"""The values of the page's controls as a request, and what was edited since a run. Every value is untrusted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, cast

from tokendyno.backend.config import MOST_PAIRS, ArmRequest, Request, workload_of
from tokendyno.backend.errors import InputError, unknown
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.optimizations.base import Optimization
from tokendyno.backend.traffic import Limits, Traffic
from tokendyno.backend.traffic.presets import drawn
from tokendyno.backend.traffic.requests import MAX_CONCURRENT, MAX_PAGES, MAX_REQUESTS, Arrival, Draw
from tokendyno.backend.traffic.trace_file import parse_trace, read_trace
from tokendyno.backend.units import plural
from tokendyno.ui.components.axis_values import choices_of, values_of
from tokendyno.ui.components.inputs import read_number, read_price, read_seconds, read_text, read_whole, read_work
from tokendyno.ui.components.stale_line import changed_since

ARMS = ("A", "B")
ARRIVALS = {"at-once": "all at once", "poisson": "at a rate (Poisson)", "burst": "in bursts"}
MAX_PATH = 4_096


class Fields(NamedTuple):
    """Values of the controls, in the order in which events pass them; the axes of arm A and of arm B follow."""

    model: object
    requests: object
    concurrent: object
    ttft_limit_s: object
    prompt_low: object
    prompt_high: object
    new_low: object
    new_high: object
    arrival: object
    rate: object
    burst: object
    seed: object
    seconds: object
    price: object
    long_percent: object
    long_low: object
    long_high: object
    pages: object
    token_limit_ms: object
    request_limit_s: object
    ignore_eos: object
    trace: object


def batch_axes() -> tuple[Optimization, ...]:
    """The axes of an arm, those about many requests first."""
    return tuple(sorted(all_axes(), key=lambda axis: not axis.many_requests))


def read_request(values: Sequence[object], local_paths: bool) -> Request:
    """The request, or an InputError that names the control."""
    fields, axes = Fields(*values[: len(Fields._fields)]), values[len(Fields._fields) :]
    traffic, seed = read_traffic(fields, local_paths)
    model = read_text("The model", fields.model).strip()
    return Request(
        model,
        read_arms(axes),
        workload_of(traffic, seed, MOST_PAIRS, bool(fields.ignore_eos)),
        traffic,
        until_s=read_seconds(fields.seconds),
        price_per_hour=read_price(fields.price),
    )


def read_traffic(fields: Fields, local_paths: bool) -> tuple[Traffic, int]:
    """The requests, given or drawn, and the seed."""
    seed, limits = read_work("Seed", fields.seed, "seed"), _limits(fields)
    concurrent = read_whole("Concurrency", fields.concurrent, 1, MAX_CONCURRENT)
    pages = read_whole("KV pages", fields.pages, 0, MAX_PAGES)
    trace = fields.trace.strip() if isinstance(fields.trace, str) else ""
    if not trace:
        return drawn(_shape(fields), seed, concurrent, pages, limits), seed
    if trace.startswith("{"):
        requests, name = parse_trace(trace.encode(), "The list of requests"), "a list"
    elif not local_paths:
        raise InputError(
            'Requests are given as JSON Lines, one a line, such as {"prompt_tokens": 64, "max_new_tokens": 128}. '
            "Files of this machine cannot be opened from here."
        )
    else:
        path = Path(trace[:MAX_PATH]).expanduser()
        requests, name = read_trace(path), path.name
    return Traffic(requests, concurrent, pages, limits, f"{plural(len(requests), 'request')} from {name}"), seed


def _shape(fields: Fields) -> Draw:
    if fields.arrival not in ARRIVALS:
        raise unknown("arrival", str(fields.arrival), ARRIVALS)
    share = read_number("Long prompts, %", fields.long_percent)
    if not 0 <= share <= 100:
        raise InputError(f"Long prompts, % is {share:g}; it must be from 0 to 100.")
    return Draw(
        requests=read_whole("Requests", fields.requests, 1, MAX_REQUESTS),
        prompt_tokens=_ends("Prompt tokens", fields.prompt_low, fields.prompt_high),
        new_tokens=_ends("New tokens", fields.new_low, fields.new_high),
        long_share=share / 100,
        long_prompt_tokens=_ends("Tokens of long prompts", fields.long_low, fields.long_high),
        arrival=cast(Arrival, fields.arrival),
        rate_per_s=read_number("Requests a second", fields.rate),
        burst=read_whole("Requests in a burst", fields.burst, 1),
    )


def _ends(label: str, low: object, high: object) -> tuple[int, int]:
    first, last = read_whole(f"{label}, from", low), read_whole(f"{label}, to", high)
    if not 1 <= first <= last:
        raise InputError(f"{label} go from {first:,} to {last:,}. Enter two numbers from 1 on, the smaller one first.")
    return first, last


def _limits(fields: Fields) -> Limits:
    return Limits(
        _limit("TTFT limit, s", fields.ttft_limit_s),
        _limit("Limit per token, ms", fields.token_limit_ms) / 1e3,
        _limit("Limit per request, s", fields.request_limit_s),
    )


def _limit(label: str, value: object) -> float:
    limit = read_number(label, value)
    if not 0 <= limit < math.inf:
        raise InputError(f"{label} is {limit:g}; it must be a number from 0 on (0: no limit).")
    return limit


def read_arms(values: Sequence[object]) -> list[ArmRequest]:
    """Each arm, from the axes of all arms."""
    width = len(batch_axes())
    return [
        ArmRequest(name, choices_of(batch_axes(), values[at * width : (at + 1) * width]))
        for at, name in enumerate(ARMS)
    ]


def choice_values(choices: Mapping[str, str]) -> list[str]:
    """One value for each axis, its default where nothing was chosen."""
    return values_of(batch_axes(), choices)


def draw_values(shape: Draw) -> dict[str, object]:
    """The values of the controls that draw these requests, by field."""
    return {
        "requests": shape.requests,
        "prompt_low": shape.prompt_tokens[0],
        "prompt_high": shape.prompt_tokens[1],
        "new_low": shape.new_tokens[0],
        "new_high": shape.new_tokens[1],
        "arrival": shape.arrival,
        "rate": shape.rate_per_s,
        "burst": shape.burst,
        "long_percent": round(100 * shape.long_share, 6),
        "long_low": shape.long_prompt_tokens[0],
        "long_high": shape.long_prompt_tokens[1],
    }


def traffic_values(request: Request) -> dict[str, object]:
    """The values of the controls that make this request again; requests that were given as a list are left out."""
    traffic, work = request.traffic, request.workload
    assert traffic is not None
    values: dict[str, object] = {
        "model": request.model,
        "concurrent": traffic.concurrent,
        "pages": traffic.pages,
        "seed": work.seed,
        "ttft_limit_s": traffic.limits.ttft_s,
        "token_limit_ms": 1e3 * traffic.limits.token_s,
        "request_limit_s": traffic.limits.request_s,
        "ignore_eos": work.ignore_eos,
    }
    if request.price_per_hour:
        values["price"] = request.price_per_hour
    return values | (draw_values(traffic.shape) if traffic.shape is not None else {})


def list_is_hidden(ran: Request, request: Request) -> bool:
    """Whether that run's requests were given as a list, which is not shown again, and no other list is given."""
    before, now = ran.traffic, request.traffic
    return before is not None and now is not None and before.shape is None and now.shape is not None


def changed(ran: Request, request: Request) -> list[str]:
    """What was edited since that run. Labels do not count; nothing is said of a list that is hidden."""
    before, now = ran.traffic, request.traffic
    if before is None or now is None:
        return []
    work = replace(ran.workload, repeats=request.workload.repeats)
    differs = (before.requests, before.concurrent, before.pages) != (now.requests, now.concurrent, now.pages)
    edited = not list_is_hidden(ran, request) and (differs or work != request.workload)
    workload = ["the traffic"] * edited + ["the limits"] * (before.limits != now.limits)
    return changed_since(ran, request, workload)
