from tokendyno.backend.optimizations.axes.loop.axis import AXIS

__all__ = ["AXIS"]
