"""The charts of the live panel: what is drawn over what, in which unit. `ui/live/js/chart_data.js` reads them."""

from typing import Literal, NamedTuple

At = Literal["token", "sample", "length"]
ChartUnit = Literal["ms", "bytes"]


class ChartLine(NamedTuple):
    """One line for each arm.

    column     field of `LaneDelta`, or of the curve of `ArmHead` that `curve` names (`tokendyno.backend.views.live`)
    at         what the column has an entry for: each token, or each memory sample; "length": a curve over the tokens in
               the KV cache; a curve over samples has its own seconds
    first      index of the first value that is drawn (0 for an encoder's passes, which are all alike)
    scale      from the column's seconds or bytes to the chart's unit
    kind       kind of layer, "" where there is none
    curve      "" for measured values, else the field of `ArmHead` whose points are drawn
    """

    column: str
    at: At
    first: int = 0
    scale: float = 1.0
    kind: str = ""
    width: float = 1.6
    curve: Literal["", "predicted", "floor", "ranks"] = ""
    label: str = ""


class EncoderText(NamedTuple):
    """A chart's texts where forward passes of an encoder are timed. `note`: why there is nothing to draw."""

    title: str
    note: str = ""


class Chart(NamedTuple):
    """One chart. All charts share one horizontal axis, of tokens (or passes) or of seconds, as the user chooses.

    title         "" means: the run's own label for its memory series
    min_span      smallest share of the largest value that the y axis covers, so that noise is not magnified
    annotations   what may explain a value is shown at its token
    encoder       texts where forward passes are timed; None: the same
    """

    key: str
    title: str
    unit: ChartUnit
    lines: tuple[ChartLine, ...]
    from_zero: bool = True
    min_span: float = 0.0
    annotations: bool = False
    encoder: EncoderText | None = None

    def as_json(self) -> dict[str, object]:
        """The declaration as the browser gets it."""
        lines = [line._asdict() for line in self.lines]
        return self._asdict() | {"lines": lines, "encoder": self.encoder._asdict() if self.encoder else None}


# Predictions and bounds are drawn first, below the measurements.

LATENCY = Chart(
    key="latency",
    title="Token latency",
    unit="ms",
    lines=(
        ChartLine("s", "token", scale=1e3, width=1.2, curve="floor", label="roofline"),
        ChartLine("lat", "token", first=1, scale=1e3),
    ),
    annotations=True,
    encoder=EncoderText("Forward pass latency"),
)
"""Token 0 is the prefill: its latency is the time to first token, which has a tile. Drawn here it would flatten all
others. The bound rises as the cache grows, until the windows are full."""

MEMORY = Chart(
    key="memory",
    title="",
    unit="bytes",
    lines=(ChartLine("bytes", "sample", curve="ranks", label="other devices", width=1.1), ChartLine("sm", "sample")),
    from_zero=False,
    min_span=0.1,
)
"""VRAM on a GPU, resident memory on a CPU. The y axis does not begin at 0, since the weights are far larger than what
grows; it covers at least a tenth of the largest value, so that a few pages do not look like a leak."""

KINDS = (
    ("kvs", "window", 3.0),
    ("kvf", "growing", 1.2),
    ("kvl", "latent", 2.0),
    ("kvt", "state", 4.5),
    ("kvi", "index", 0.7),
)
"""Of what a cache holds: its column, its name, and the width of its line."""

KV = Chart(
    key="kv",
    title="KV cache",
    unit="bytes",
    lines=(
        *(
            ChartLine(kind, "length", kind=kind, width=1.2, curve="predicted", label="predicted")
            for _, kind, _ in KINDS
        ),
        *(ChartLine(column, "token", kind=kind, width=width) for column, kind, width in KINDS),
    ),
    encoder=EncoderText("KV cache", note="An encoder has no KV cache."),
)
"""By kind, told apart by line width. A sliding-window layer needs only its window, so its line turns flat there, unless
the cache ignores windows; a state (linear attention, Mamba, short convolutions) is flat from the first token on."""

CHARTS: tuple[Chart, ...] = (LATENCY, MEMORY, KV)
"""From left to right."""
