"""Guided pages, each with one idea, a recording that shows it, and arms to try it with: `presets/stories/`."""

from tokendyno.backend.stories.story import Here, Story, stories, story

__all__ = ["Here", "Story", "stories", "story"]
