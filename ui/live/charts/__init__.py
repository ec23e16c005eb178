"""The charts of the live panel, one a file: each declares what is drawn, not how."""

from tokendyno.ui.live.charts.chart import Chart
from tokendyno.ui.live.charts.kv import KV
from tokendyno.ui.live.charts.latency import LATENCY
from tokendyno.ui.live.charts.memory import MEMORY

CHARTS: tuple[Chart, ...] = (LATENCY, MEMORY, KV)
"""From left to right."""

__all__ = ["CHARTS", "KV", "LATENCY", "MEMORY", "Chart"]
