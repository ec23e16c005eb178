"""Latency of every token, above the roofline bound of its step.

Token 0 is the prefill: its latency is the time to first token, which has a tile. Drawn here it would flatten all
others. The bound is thin and dotted, in the arm's colour; it rises as the cache grows, until the windows are full.
"""

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
