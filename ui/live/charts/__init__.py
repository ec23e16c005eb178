"""The charts of the live panel, one a file: each declares what is drawn, not how."""

from ui.live.charts.chart import Chart
from ui.live.charts.kv import KV
from ui.live.charts.latency import LATENCY
from ui.live.charts.memory import MEMORY

CHARTS: tuple[Chart, ...] = (LATENCY, MEMORY, KV)
"""From left to right."""

__all__ = ["CHARTS", "KV", "LATENCY", "MEMORY", "Chart"]
