"""Ranks on several machines: how those that join are received, started, watched and let go."""
