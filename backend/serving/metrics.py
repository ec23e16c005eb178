"""The answer of `/metrics`, in Prometheus' text format (prometheus.io/docs/instrumenting/exposition_formats)."""

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
    """Counts of times by bucket: of those that are at most each of `limits_s`, and of longer ones."""

    def __init__(self, limits_s: tuple[float, ...]) -> None:
        self._limits_s, self._counts, self._sum_s = limits_s, [0] * (len(limits_s) + 1), 0.0

    def observe(self, seconds: float) -> None:
        """One more."""
        self._counts[bisect_left(self._limits_s, seconds)] += 1
        self._sum_s += seconds

    def values(self) -> Iterator[str]:
        """What stands behind the metric's name in each line. Each bucket counts those of the ones before, too."""
        total = 0
        for limit, count in zip([*(f"{limit_s:g}" for limit_s in self._limits_s), "+Inf"], self._counts, strict=True):
            total += count
            yield f'_bucket{{le="{limit}"}} {total}'
        yield f"_sum {self._sum_s!r}"
        yield f"_count {total}"


class Metrics:
    """Counts of one server. They change in its event loop alone."""

    def __init__(self) -> None:
        self.requests: Counter[Outcome] = Counter()
        self.prompt_tokens = self.completion_tokens = 0
        self.first_token_s, self.each_token_s = Histogram(FIRST_TOKEN_S), Histogram(EACH_TOKEN_S)

    def text(self, waiting: int, running: int) -> str:
        """All of them."""
        outcomes = [f'{{outcome="{outcome}"}} {self.requests[outcome]}' for outcome in OUTCOMES]
        first = "From a whole request to its first token, waiting included."
        lines = [
            *_metric("requests_total", "counter", "Requests by how they ended.", outcomes),
            *_metric("prompt_tokens_total", "counter", "Tokens of prompts that were read.", [f" {self.prompt_tokens}"]),
            *_metric("completion_tokens_total", "counter", "Generated tokens.", [f" {self.completion_tokens}"]),
            *_metric("queue_length", "gauge", "Requests that wait for their turn.", [f" {waiting}"]),
            *_metric("running", "gauge", "Requests whose text is generated.", [f" {running}"]),
            *_metric("time_to_first_token_seconds", "histogram", first, self.first_token_s.values()),
            *_metric(
                "time_per_output_token_seconds",
                "histogram",
                "Mean of each request after its first token.",
                self.each_token_s.values(),
            ),
        ]
        return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, about: str, values: Iterable[str]) -> Iterator[str]:
    """The lines of a metric. `values`: what stands behind its name in each."""
    yield f"# HELP tokendyno_{name} {about}"
    yield f"# TYPE tokendyno_{name} {kind}"
    yield from (f"tokendyno_{name}{value}" for value in values)
