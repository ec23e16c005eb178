"""Many requests: their lengths and arrival times, drawn by seed or read from a file; no torch."""

from tokendyno.backend.traffic.requests import Limits, Traffic, TrafficRequest

__all__ = ["Limits", "Traffic", "TrafficRequest"]
