"""What `/metrics` tells, in Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats)."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

Outcome = Literal["stop", "length", "refused", "full", "stopping", "left", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("stop", "length", "refused", "full", "stopping", "left", "failed")

FIRST_TOKEN_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
EACH_TOKEN_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Histogram:
    """How often seconds were at most so many."""

    def __init__(self, limits_s: tuple[float, ...]) -> None:
        self._limits_s, self._counts, self._sum_s = limits_s, [0] * (len(limits_s) + 1), 0.0

    def observe(self, seconds: float) -> None:
        """One more."""
        self._counts[bisect_left(self._limits_s, seconds)] += 1
        self._sum_s += seconds

    def lines(self, name: str) -> Iterator[str]:
        """As they are told: each bucket holds those of the ones before."""
        total = 0
        for limit, count in zip((*(f"{one:g}" for one in self._limits_s), "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{limit}"}} {total}'
        yield f"{name}_sum {self._sum_s!r}"
        yield f"{name}_count {total}"


class Metrics:
    """Counts of one server. They change in its event loop alone."""

    def __init__(self) -> None:
        self.requests: Counter[Outcome] = Counter()
        self.prompt_tokens = self.completion_tokens = 0
        self.first_token_s, self.each_token_s = Histogram(FIRST_TOKEN_S), Histogram(EACH_TOKEN_S)

    def text(self, waiting: int, running: int) -> str:
        """All of them."""
        told = [
            (
                "requests_total",
                "counter",
                "Requests by how they ended.",
                [f'{{outcome="{outcome}"}} {self.requests[outcome]}' for outcome in OUTCOMES],
            ),
            ("prompt_tokens_total", "counter", "Tokens of prompts that were read.", [f" {self.prompt_tokens}"]),
            ("completion_tokens_total", "counter", "Tokens that were generated.", [f" {self.completion_tokens}"]),
            ("queue_length", "gauge", "Requests that wait for their turn.", [f" {waiting}"]),
            ("running", "gauge", "Requests whose text is generated.", [f" {running}"]),
        ]
        lines: list[str] = []
        for name, kind, what, values in told:
            lines += _headed(f"tokendyno_{name}", kind, what, (f"tokendyno_{name}{value}" for value in values))
        for name, what, histogram in (
            (
                "time_to_first_token_seconds",
                "From a whole request to its first token, waiting included.",
                "first_token_s",
            ),
            ("time_per_output_token_seconds", "Mean of each request after its first token.", "each_token_s"),
        ):
            lines += _headed(
                f"tokendyno_{name}", "histogram", what, getattr(self, histogram).lines(f"tokendyno_{name}")
            )
        return "\n".join(lines) + "\n"


def _headed(name: str, kind: str, what: str, lines: Iterable[str]) -> list[str]:
    return [f"# HELP {name} {what}", f"# TYPE {name} {kind}", *lines]
