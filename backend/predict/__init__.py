"""What a run will need, from the model's facts alone: weights, KV cache, and the sum."""

from backend.predict.kv import KvBytes, KvPoint, kv_bytes, kv_polyline, kv_series
from backend.predict.memory import MemoryEstimate, peak_bytes
from backend.predict.weights import itemsize, parameters, weight_bytes

__all__ = [
    "KvBytes",
    "KvPoint",
    "MemoryEstimate",
    "itemsize",
    "kv_bytes",
    "kv_polyline",
    "kv_series",
    "parameters",
    "peak_bytes",
    "weight_bytes",
]
