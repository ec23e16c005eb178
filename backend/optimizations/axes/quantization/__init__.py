from tokendyno.backend.optimizations.axes.quantization.axis import AXIS

__all__ = ["AXIS"]
