"""KV cache bytes by layer kind, beside the prediction.

A sliding-window layer needs only its window, so its line turns flat there, unless the cache ignores windows. Kinds
differ by line width (sliding is thick). Predictions are thin and dotted, and drawn first, below the measurements.
"""

from tokendyno.ui.live.charts.chart import Chart, ChartLine, EncoderText

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
