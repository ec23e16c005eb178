from tokendyno.backend.optimizations.axes.cache.axis import AXIS

__all__ = ["AXIS"]
