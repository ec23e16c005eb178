"""Latency of every token, over the floor that the hardware sets it.

Token 0 is the prefill: its time to first token is a tile. Drawn here, it would press all others flat. The floor is
thin and dotted, in the arm's colour; it rises as the cache grows, until the windows are full.
"""

from ui.charts.panel import ForEncoder, Panel, Trace

LATENCY = Panel(
    key="latency",
    title="Token latency",
    x_title="token",
    hover="token %{x}",
    unit="ms",
    traces=(
        Trace("s", "token", scale=1e3, width=1.2, predicted=True, curve="floor"),
        Trace("lat", "token", first=1, scale=1e3),
    ),
    marks=True,
    encoder=ForEncoder("Forward pass latency", "forward pass", "pass %{x}"),
)
