"""Memory of the worker while it runs: VRAM on a GPU, resident memory on a CPU, and titled so.

The axis does not begin at 0, since weights dwarf what grows; it covers at least a tenth of the value, so
that a page more or less does not look like a mountain.
"""

from ui.charts.panel import Panel, Trace

MEMORY = Panel(
    key="memory",
    title="",
    x_title="seconds",
    hover="%{x} s",
    unit="bytes",
    traces=(Trace("sm", "second"),),
    from_zero=False,
    min_span=0.1,
)
