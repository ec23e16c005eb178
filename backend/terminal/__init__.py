"""What a terminal is told: its width and colours, tables, folded text. Knows nothing of runs."""

from backend.terminal.screen import Screen, screen_of, width_of
from backend.terminal.tables import Column, fold, table

__all__ = ["Column", "Screen", "fold", "screen_of", "table", "width_of"]
