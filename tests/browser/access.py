"""What may keep someone from using a page: findings of axe-core, small targets, movement, overlaps; what has the focus.

The functions are JavaScript, in `access.js`.
"""

from pathlib import Path
from typing import Any

from tests.support.axe import script

SERIOUS = ("moderate", "serious", "critical")
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice")
LEAST_TARGET_PX = 24
"""WCAG 2.5.8."""

SOURCE = Path(__file__).with_name("access.js").read_text(encoding="utf-8")


def violations(page: Any) -> list[str]:
    """What axe-core finds that is moderate or worse, one line for each element."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(script())
    return _call(page, "violations", list(TAGS), list(SERIOUS))


def small_targets(page: Any) -> list[str]:
    """What can be pressed and is smaller than 24 CSS pixels in one direction."""
    return _call(page, "smallTargets", LEAST_TARGET_PX)


def moving(page: Any) -> list[str]:
    """What moves, or would move when it changes."""
    return _call(page, "moving")


def overlaps(page: Any) -> list[str]:
    """Texts that lie over each other or beyond the edge of their chart, and a page that is wider than its window."""
    return _call(page, "overlaps")


def obstacles(page: Any) -> list[str]:
    """All of that but what moves."""
    return [f"{what.__name__}: {one}" for what in (violations, small_targets, overlaps) for one in what(page)]


def focused(page: Any) -> str:
    """What has the focus: a button's id, or a name; "nothing" where it is lost."""
    found: str = page.evaluate(f"() => {{ {SOURCE}; return focused(); }}")
    return found


def _call(page: Any, function: str, *given: Any) -> list[str]:
    found: list[str] = page.evaluate(f"async (given) => {{ {SOURCE}; return {function}(...given); }}", list(given))
    return found
