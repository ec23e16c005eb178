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
    lines=(ChartLine("bytes", "sample", curve="ranks", label="other devices", width=1.1), ChartLine("sm", "sample")),
    from_zero=False,
    min_span=0.1,
)
"""VRAM on a GPU, resident memory on a CPU. The y axis does not begin at 0, since the weights are far larger than what
grows; it covers at least a tenth of the largest value, so that a few pages do not look like a leak."""

KV = Chart(
    key="kv",
    title="KV cache",
    unit="bytes",
    lines=(
        ChartLine("sliding", "length", kind="sliding", width=1.2, curve="predicted", label="predicted"),
        ChartLine("full", "length", kind="full", width=1.2, curve="predicted", label="predicted"),
        ChartLine("kvs", "token", kind="sliding", width=3.0),
        ChartLine("kvf", "token", kind="full", width=1.2),
    ),
    encoder=EncoderText("KV cache", note="An encoder has no KV cache."),
)
"""By layer kind, told apart by line width. A sliding-window layer needs only its window, so its line turns flat there,
unless the cache ignores windows."""

CHARTS: tuple[Chart, ...] = (LATENCY, MEMORY, KV)
"""From left to right."""

__all__ = ["CHARTS", "KV", "LATENCY", "MEMORY", "Chart"]
