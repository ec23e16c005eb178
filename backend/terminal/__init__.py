"""What a terminal is told: its width and colours, tables, folded text. Knows nothing of runs."""

from backend.terminal.screen import Screen
from backend.terminal.tables import Column, fold, table

__all__ = ["Column", "Screen", "fold", "table"]
