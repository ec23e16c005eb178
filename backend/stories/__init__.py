"""Guided pages, each with one idea, a recording that shows it, and arms to try it with: Markdown files in
`presets/stories/` whose front matter is TOML between two lines of `+++`."""

import functools
from pathlib import Path
from typing import Literal

import msgspec

from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError, unknown
from tokendyno.backend.files.toml import invalid, parse_toml, read_text
from tokendyno.backend.paths import PRESETS

FOLDER = PRESETS / "stories"
FENCE = "+++"


class Here(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What "Run it here" runs where there is no GPU: two arms of the embedded model.

    a, b  choices of the arms, as on the command line
    note  what to expect of it on a CPU
    page  the page that runs it; on Batching the visitor finds the arms as they are there
    """

    a: str
    b: str
    prompt: str
    max_new_tokens: int
    note: str
    ignore_eos: bool = False
    model: str = "pocket"
    page: Literal["compare", "batching"] = "compare"


class Also(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A further recording of a story. `shows`: what it adds, in a few words."""

    recording: str
    shows: str


class Story(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One story.

    exists     the device on which its effect exists: "cuda", "cpu", "" for both
    sittings   of a number that is a ratio of times: the ratios of several sittings, one of which was recorded
    also       others that can be played in its place
    beside     one of these that is of another model, with which the number compares
    claims     names of those in presets/claims/ that say the same: whether it holds is what was measured of them
    found      what the recording shows of it, in a sentence
    chart      the one that shows it on a slide, with its figure
    text       paragraphs of plain text; a single word or name may stand between backquotes
    """

    title: str
    order: int
    recording: str
    number: Literal["speed", "growth", "memory", "roofline", "pays", "useful", "graphs"]
    headline: str
    why: str
    claim: str
    source: str
    found: str
    here: Here
    claims: tuple[str, ...] = ()
    also: tuple[Also, ...] = ()
    beside: str = ""
    exists: Literal["", "cpu", "cuda"] = ""
    sittings: tuple[float, ...] = ()
    chart: Literal["latency", "memory", "kv"] = "latency"
    name: str = ""
    text: tuple[str, ...] = ()

    @property
    def recordings(self) -> tuple[str, ...]:
        """Every recording that it can play, its own first."""
        return (self.recording, *(also.recording for also in self.also))


@functools.cache
def stories(folder: Path = FOLDER) -> tuple[Story, ...]:
    """Every story, in order. InputError names the file that cannot be used, and what is wrong in it."""
    return tuple(sorted((_read(path) for path in folder.glob("*.md")), key=lambda story: (story.order, story.name)))


def first_story(device: str) -> Story:
    """The story of the first page: the first whose effect exists on that device alone, else there."""
    told_here = [story for story in stories() if story.exists in ("", device)]
    return next((story for story in told_here if story.exists), told_here[0])


def story(name: str) -> Story:
    """A story by name. InputError lists the names if there is none."""
    for known in stories():
        if known.name == name:
            return known
    raise unknown("story", name, [known.name for known in stories()])


def _read(path: Path) -> Story:
    parts = read_text(path).replace("\r\n", "\n").split(f"{FENCE}\n", 2)
    if len(parts) < 3 or parts[0]:
        raise invalid(path, f"it must begin with TOML between two lines of {FENCE}.")
    _, front, body = parts
    table = parse_toml(path, front) | {"name": path.stem, "text": _paragraphs(body)}
    try:
        story = msgspec.convert(table, Story)
        for arm in (story.here.a, story.here.b):
            parse_arm(story.here.model, arm)
        Workload(story.here.prompt, max_new_tokens=story.here.max_new_tokens)
    except (msgspec.ValidationError, InputError) as error:
        raise invalid(path, f"{error}.") from None
    if not story.text:
        raise invalid(path, "it has no text below its front matter.")
    return story


def _paragraphs(body: str) -> list[str]:
    return [" ".join(part.split()) for part in body.split("\n\n") if part.strip()]
