from tokendyno.backend.optimizations.axes.attention.axis import AXIS

__all__ = ["AXIS"]
