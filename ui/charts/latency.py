"""Latency of every token.

Token 0 is the prefill: its time to first token is a tile. Drawn here, it would press all others flat.
"""

from ui.charts.panel import Panel, Trace

LATENCY = Panel(
    key="latency",
    title="Token latency",
    x_title="token",
    hover="token %{x}",
    unit="ms",
    traces=(Trace("lat", "token", first=1, scale=1e3),),
)
