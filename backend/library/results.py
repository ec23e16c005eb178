"""What functions of the library take as an arm, and what they return: the document that `--json` writes, with its
verdict, figure and table."""

import importlib
import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import msgspec

from tokendyno.backend.ablation.advise.result import AdviceDocument, MeasuredArm
from tokendyno.backend.ablation.headline import sweep_headline
from tokendyno.backend.ablation.sweep import PointResult, SweepDocument
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.table import Fit
from tokendyno.backend.fit.text import answer
from tokendyno.backend.runs.quality import Gate
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.views.check_document import CheckDocument
from tokendyno.backend.views.schema import Document, QualityDocument
from tokendyno.backend.views.verdict import verdict_of

Arm = str | Mapping[str, str] | Sequence[str]
"""A preset, or choices: "cache=static,loop=own", the same as a list, or by axis."""

D = TypeVar("D")
Rows = Sequence[dict[str, Any]]


def arm_text(arm: Arm) -> str:
    """The arm as `--arm` takes it."""
    if isinstance(arm, str | None):
        return arm or ""
    return ",".join(f"{axis}={choice}" for axis, choice in arm.items()) if isinstance(arm, Mapping) else ",".join(arm)


class Result(Generic[D]):
    """`document`: what `--json` writes, as a typed value (of `fit`, as a dictionary)."""

    def __init__(self, document: D) -> None:
        self.document = document

    def to_json(self) -> str:
        """The document that `--json` writes."""
        return json.dumps(msgspec.to_builtins(self.document), indent=1, allow_nan=False)

    def to_pandas(self) -> Any:
        """A DataFrame. InputError where pandas is not installed."""
        return _imported("pandas").DataFrame(self._rows())

    def figure(self) -> Any:
        """A Plotly figure, which draws itself in notebooks. InputError where plotly is not installed."""
        _imported("plotly")
        return self._figure(importlib.import_module("tokendyno.ui.figures"))

    def _rows(self) -> Rows:
        raise NotImplementedError

    def _figure(self, figures: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<tokendyno.{type(self).__name__}: {getattr(self, 'verdict', '')}>"


def _imported(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(f"This needs {package}, which is not installed. Install it: pip install {package}.") from error


def _intervals(figures: Any, names: Sequence[str], timed: Sequence[PointResult | MeasuredArm], title: str) -> Any:
    """A time a token, with its interval, for each point or arm."""
    means = [one.latency_mean_s for one in timed]
    return figures.intervals(names, means, [(one.latency_low_s, one.latency_high_s) for one in timed], title)


class RunResult(Result[Document]):
    """Of `run` and `compare`. `arms` are those of the document, by name; `gate`: what is known of B's quality."""

    def __init__(self, document: Document, run: Snapshot, gate: Gate | None = None) -> None:
        super().__init__(document)
        self.run, self._gate = run, gate
        self.arms = {arm.name: arm for arm in document.arms}

    @property
    def verdict(self) -> str:
        """The sentence of the page and the command line."""
        return verdict_of(self.run, self._gate).sentence

    def _rows(self) -> Rows:
        """A row for each step of each arm's runs, repeat by repeat; memory is that of the first."""
        rows: list[dict[str, Any]] = []
        for name, arm in self.arms.items():
            for number, repeat in enumerate(arm.repeats):
                sizes = [None] * len(repeat.latency_s) if number else arm.memory_bytes
                steps = zip(repeat.latency_s, accumulate(repeat.latency_s), sizes, strict=True)
                for step, (latency_s, time_s, size) in enumerate(steps):
                    row = {"arm": name, "repeat": number, "step": step, "time_s": time_s, "latency_s": latency_s}
                    rows.append(row | {"memory_bytes": size})
        return rows

    def _figure(self, figures: Any) -> Any:
        return figures.latency({name: arm.latency_s for name, arm in self.arms.items()}, self.verdict)


class QualityResult(Result[QualityDocument]):
    """Of `quality`."""

    @property
    def verdict(self) -> str:
        """What arm B costs, in a sentence."""
        return self.document.sentence

    def _rows(self) -> Rows:
        return [
            {"text": text.name, "arm": arm, **msgspec.to_builtins(reading)}
            for text in self.document.texts
            for arm, reading in text.arms.items()
        ]

    def _figure(self, figures: Any) -> Any:
        kl_nats = {text.name: text.difference.kl_nats for text in self.document.texts if text.difference}
        return figures.bars(kl_nats, "nats of KL divergence", self.verdict)


class SweepResult(Result[SweepDocument]):
    """Of `sweep`."""

    @property
    def verdict(self) -> str:
        """The fastest point, in a sentence; "" where fewer than two could be measured."""
        return sweep_headline(self.document.points, self.document.rounds)

    def _rows(self) -> Rows:
        rows = [msgspec.to_builtins(point) for point in self.document.points]
        return [row.pop("settings") | row for row in rows]

    def _figure(self, figures: Any) -> Any:
        points = [point for point in self.document.points if point.latency_mean_s is not None]
        names = [", ".join(f"{name}={value}" for name, value in point.settings.items()) for point in points]
        return _intervals(figures, names, points, self.verdict)


class AdviceResult(Result[AdviceDocument]):
    """Of `advise`."""

    @property
    def verdict(self) -> str:
        """What to use, in a sentence."""
        return self.document.headline

    @property
    def script(self) -> str:
        """A short program of the arm that is advised; "" where there is none."""
        return self.document.winners[0].script if self.document.winners else ""

    def _rows(self) -> Rows:
        return [msgspec.to_builtins(arm) for arm in self.document.measured or self.document.predicted]

    def _figure(self, figures: Any) -> Any:
        arms = [arm for arm in self.document.measured if arm.latency_mean_s is not None]
        return _intervals(figures, [arm.title for arm in arms], arms, self.verdict)


class FitResult(Result[dict[str, Any]]):
    """Of `fit`. `table`: its rows as the command line prints them from."""

    def __init__(self, document: dict[str, Any], table: Fit) -> None:
        super().__init__(document)
        self.table = table

    @property
    def verdict(self) -> str:
        """Whether the model fits, and with what."""
        return answer(self.table)

    def _rows(self) -> Rows:
        rows: Rows = self.document["rows"]
        return rows

    def _figure(self, figures: Any) -> Any:
        peaks = {", ".join(row.choices.values()): row.peak_bytes for row in self.table.main}
        return figures.bars(peaks, "bytes", self.verdict)


class CheckResult(Result[CheckDocument]):
    """Of `check`."""

    def __init__(self, document: CheckDocument, checked: Checked) -> None:
        super().__init__(document)
        where = f" on {document.where}" if document.assumed else ""
        self._verdict = checked.refusal() or checked.sentence(where)

    @property
    def runnable(self) -> bool:
        """Whether the arm would run."""
        return self.document.runnable

    @property
    def verdict(self) -> str:
        """That it would run, and what of it would be replaced; or every reason why not with its fix."""
        return self._verdict

    def _rows(self) -> Rows:
        return [msgspec.to_builtins(verdict) for verdict in self.document.verdicts]

    def _figure(self, figures: Any) -> Any:
        memory = self.document.predicted_bytes
        rest = memory.total - memory.weights - memory.kv
        parts = {"weights": memory.weights, "KV cache": memory.kv, "the rest": rest, "free": self.document.free_bytes}
        return figures.bars(parts, "bytes", self.verdict)
