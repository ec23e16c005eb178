"""Guided pages, each with one idea, a recording that shows it, and arms to try it with: `presets/stories/`."""

from tokendyno.backend.stories.story import Here, Story, first_story, stories, story

__all__ = ["Here", "Story", "first_story", "stories", "story"]
