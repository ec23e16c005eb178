"""One chart a file: each declares what is drawn, and nothing of how."""

from ui.charts.kv import KV
from ui.charts.latency import LATENCY
from ui.charts.memory import MEMORY
from ui.charts.panel import Panel

PANELS: tuple[Panel, ...] = (LATENCY, MEMORY, KV)
"""All charts of the live panel, from left to right."""

__all__ = ["KV", "LATENCY", "MEMORY", "PANELS", "Panel"]
