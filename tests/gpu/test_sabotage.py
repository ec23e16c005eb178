"""Sabotage of choices that only a GPU can run."""

from tests.sabotage.saboteur import Sabotage

SABOTEURS: list[Sabotage] = []
REASONS: dict[tuple[str, str], str] = {}
