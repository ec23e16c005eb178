"""`tokendyno batch`: many requests through two arms."""

import argparse

import msgspec

from tokendyno.backend.cli.commands import perform
from tokendyno.backend.cli.files import typed_path
from tokendyno.backend.cli.options import (
    ARM_HELP,
    Add,
    add_all,
    add_model,
    add_number,
    add_pairs,
    pairs_of,
    written_arms,
)
from tokendyno.backend.cli.stored import add_history_option
from tokendyno.backend.config import Request, workload_of
from tokendyno.backend.errors import InputError
from tokendyno.backend.traffic import Limits, Traffic
from tokendyno.backend.traffic.presets import drawn, traffic_preset, traffic_presets
from tokendyno.backend.traffic.requests import MAX_CONCURRENT, MAX_PAGES, MAX_REQUESTS
from tokendyno.backend.traffic.trace_file import read_trace
from tokendyno.backend.units import plural


def batch(options: argparse.Namespace) -> int:
    return perform(options, batch_of(options))


def batch_of(options: argparse.Namespace) -> Request:
    traffic = read_traffic(options)
    work = workload_of(traffic, options.seed, ignore_eos=not options.stop_at_eos)
    arms = written_arms(options, {"A": options.a, "B": options.b}, work)
    return pairs_of(options, Request(options.model, arms, work, traffic, proof=not options.no_proof))


def read_traffic(options: argparse.Namespace) -> Traffic:
    """The requests of a file, or drawn as a preset says, with what the options change."""
    limits = Limits(options.ttft_limit, options.token_limit, options.request_limit)
    if options.trace is not None:
        for name in ("requests", "rate", "traffic", "prompt_lengths", "output_lengths"):
            if getattr(options, name) is not None:
                option = f"--{name.replace('_', '-')}"
                raise InputError(f"--trace names the requests, so {option} has nothing to change. Remove one of them.")
        requests = read_trace(options.trace)
        concurrent = 16 if options.concurrent is None else options.concurrent
        return Traffic(requests, concurrent, options.pages, limits, f"{plural(len(requests), 'request')} of a trace")
    preset = traffic_preset(options.traffic or traffic_presets()[0].name)
    shape, changes = preset.draw, {}
    if options.requests is not None:
        changes["requests"] = options.requests
    if options.rate is not None:
        changes["rate_per_s"] = options.rate
        changes["arrival"] = "poisson" if shape.arrival == "at-once" else shape.arrival
    for name, text in (("prompt_tokens", options.prompt_lengths), ("new_tokens", options.output_lengths)):
        if text is not None:
            changes[name] = _range(text)
    shape = msgspec.structs.replace(shape, **changes)
    concurrent = preset.concurrent if options.concurrent is None else options.concurrent
    return drawn(shape, options.seed, concurrent, options.pages, limits if limits != Limits() else preset.limits)


def _range(text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    try:
        return int(low), int(high if dash else low)
    except ValueError:
        raise InputError(f"{text!r} is no range of tokens. Write two whole numbers, such as 16-256.") from None


def add_commands(add: Add) -> None:
    details = "Decoding is greedy. Arms may also be two settings of one way: batching=continuous,page_size=16."
    sub = add("batch", batch, "serve many requests with two arms (static, continuous batching)", details, json=True)
    sub.add_argument("--a", default="batching=static", metavar="ARM", help=f"arm A: {ARM_HELP} (default: %(default)s)")
    sub.add_argument("--b", default="batching=continuous", metavar="ARM", help="arm B, likewise")
    add_model(sub)
    names = ", ".join(preset.name for preset in traffic_presets())
    sub.add_argument(
        "--traffic",
        metavar="NAME",
        help=f"what requests are drawn from: {names} (default: {traffic_presets()[0].name})",
    )
    add_number(sub, "--requests", None, "draw so many", 1, MAX_REQUESTS)
    sub.add_argument("--prompt-lengths", metavar="LOW-HIGH", help="tokens of their prompts, such as 16-256, uniform")
    sub.add_argument("--output-lengths", metavar="LOW-HIGH", help="tokens to generate, such as 16-256")
    sub.add_argument(
        "--rate", type=float, metavar="R", help="requests a second on average (at-once becomes a Poisson stream)"
    )
    add_number(sub, "--seed", 0, "seed of the draw")
    sub.add_argument(
        "--trace",
        type=typed_path,
        metavar="FILE",
        help="JSON Lines instead: max_new_tokens, one of prompt, token_ids or prompt_tokens, and arrival_s",
    )
    at_once = "requests that may be in work at once, in both arms (default: the preset's, or 16)"
    add_number(sub, "--concurrent", None, at_once, 1, MAX_CONCURRENT)
    pages = "pages of the KV cache of continuous batching; 0: as many as the longest requests need"
    add_number(sub, "--pages", 0, pages, 0, MAX_PAGES)
    sub.add_argument(
        "--stop-at-eos", action="store_true", help="end a request at EOS; otherwise each generates all its tokens"
    )
    limits = {
        "ttft": "for goodput: most seconds to the first token; 0: no limit",
        "token": "likewise, a token",
        "request": "likewise, a request",
    }
    for name, text in limits.items():
        sub.add_argument(f"--{name}-limit", type=float, default=0.0, metavar="S", help=text)
    add_pairs(sub)
    add_history_option(sub)
    add_all(sub)
