"""The charts of the live panel: each declares what is drawn, predictions and bounds first, below the measurements."""

from tokendyno.ui.live.charts.chart import Chart, ChartLine, EncoderText

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
    lines=(
        ChartLine("bytes", "sample", curve="ranks", label="other devices", width=1.1),
        ChartLine("sm", "sample"),
    ),
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

__all__ = ["CHARTS", "KV", "LATENCY", "MEMORY", "Chart"]
