from tokendyno.backend.optimizations.axes.parallel.axis import AXIS

__all__ = ["AXIS"]
