"""The machine: GPUs, memory, packages and peak rates. Read from the system, never from torch."""

from tokendyno.backend.hardware.host import host_memory
from tokendyno.backend.hardware.machine import PACKAGES, Gpu, Machine, detect, hub_offline, versions

__all__ = ["PACKAGES", "Gpu", "Machine", "detect", "host_memory", "hub_offline", "versions"]
