"""`tokendyno story`: the guided pages in the terminal."""

import argparse
import shlex
import sys
from collections.abc import Callable

from backend.claims.view import measured_of
from backend.cli.history_option import default_file
from backend.cli.run_table import no_reading
from backend.cli.stored import find_run
from backend.history.line import line_of
from backend.stories import Here, Story, stories, story
from backend.terminal import Column, Screen, fold, screen_of, table
from backend.views.origin import whole_note


def tell(options: argparse.Namespace) -> int:
    """Without a name the list, a line each; else one story, with what its recording shows."""
    screen = screen_of(sys.stdout, options.color)
    if not options.name:
        rows = [[screen.paint(one.name, "bold"), one.title] for one in stories()]
        print("\n".join(table([Column(), Column(prose=True)], rows, screen)))
        return 0
    print("\n".join(story_lines(story(options.name), screen)))
    return 0


def story_lines(told: Story, screen: Screen) -> list[str]:
    """A story in lines that fit the terminal."""
    run = find_run(told.recording, default_file())
    here = told.here
    measured = [f"Measured ({one.title}): {one.word}. {one.sentence}" for one in measured_of(told.claims)]
    blocks = [
        [screen.paint(told.title, "bold")],
        *(fold(paragraph.replace("`", ""), screen.columns) for paragraph in told.text),
        [
            *fold(f"Claim: {told.claim} ({told.source})", screen.columns),
            *(line for said in measured for line in fold(said, screen.columns)),
        ],
        fold(told.found, screen.columns),
        [
            *fold(f"Recorded: {line_of(run.snapshot(), no_reading)}", screen.columns),
            *fold(whole_note(run.created), screen.columns),
            f"  tokendyno replay {told.recording}",
        ],
        *(also_lines(one.recording, one.shows, screen) for one in told.also),
        [
            *fold(f"Run it here: {here.note}", screen.columns),
            f"  {shlex.join(command_here(here))}",
        ],
    ]
    return "\n\n".join("\n".join(block) for block in blocks).split("\n")


def also_lines(recording: str, shows: str, screen: Screen) -> list[str]:
    """A further recording of a story."""
    run = find_run(recording, default_file())
    return [
        *fold(f"Also recorded: {shows}. {line_of(run.snapshot(), no_reading)}", screen.columns),
        f"  tokendyno replay {recording}",
    ]


def command_here(here: Here) -> list[str]:
    """What is typed to run a story's arms."""
    arms = [*(["--a", here.a] if here.a else []), "--b", here.b]
    if here.page == "batching":
        return ["tokendyno", "batch", *arms]
    work = ["--prompt", here.prompt, "--max-new-tokens", str(here.max_new_tokens)]
    return ["tokendyno", "compare", "--model", here.model, *arms, *work, *(["--ignore-eos"] if here.ignore_eos else [])]


def add_story(add: Callable[..., argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The command and its options."""
    sub = add("story", tell, "guided pages, one idea each, with a recording; without a name the list")
    sub.add_argument("name", nargs="?", default="", metavar="NAME", help="one of the list")
    return sub
