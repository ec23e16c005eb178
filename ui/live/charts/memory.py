"""Memory of the worker during its run: VRAM on a GPU, resident memory on a CPU.

The y axis does not begin at 0, since the weights are far larger than what grows; it covers at least a tenth of the
largest value, so that a few pages do not look like a leak. Where several ranks run a model, the others' follow once
they are done.
"""

from tokendyno.ui.live.charts.chart import Chart, ChartLine

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
