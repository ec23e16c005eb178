"""What documents claim about optimizations, and what was measured of it."""
