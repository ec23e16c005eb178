from tokendyno.backend.optimizations.axes.kernels.axis import AXIS

__all__ = ["AXIS"]
