"""What a run will need, from the model's facts alone: weights, KV cache, and the sum."""

from backend.predict.kv import KvBytes, KvPoint, kv_bytes, kv_polyline, kv_series
from backend.predict.memory import MemoryEstimate, Setup, peak_bytes
from backend.predict.parallel import share
from backend.predict.roofline import Floor, Limits, floor, floor_points
from backend.predict.weights import itemsize, parameters, touched_bytes, weight_bytes

__all__ = [
    "Floor",
    "KvBytes",
    "KvPoint",
    "Limits",
    "MemoryEstimate",
    "Setup",
    "floor",
    "floor_points",
    "itemsize",
    "kv_bytes",
    "kv_polyline",
    "kv_series",
    "parameters",
    "peak_bytes",
    "share",
    "touched_bytes",
    "weight_bytes",
]
