"""`tokendyno story`: the guided pages in the terminal."""

import argparse
import shlex

from tokendyno.backend.claims.view import measured_of
from tokendyno.backend.cli.options import Add
from tokendyno.backend.cli.run_table import no_reading
from tokendyno.backend.cli.stored import default_file, find_run
from tokendyno.backend.cli.terminal import Block, Column, Row, Styled, Table, Verbatim, show
from tokendyno.backend.history.history import line_of
from tokendyno.backend.stories import Here, Story, stories, story
from tokendyno.backend.views.sentences import whole_note


def tell(options: argparse.Namespace) -> int:
    """Without a name the list, a line each; else one story, with what its recording shows."""
    if options.name:
        show(story_blocks(story(options.name)), options.color)
        return 0
    rows: list[Row] = [[Styled(page.name, "bold"), page.title] for page in stories()]
    show([[Table([Column(), Column(prose=True)], rows)]], options.color)
    return 0


def story_blocks(page: Story) -> list[Block]:
    """The text, the claim with what was measured of it, what was found, the recordings, and how to run it here."""
    history = default_file()
    run = find_run(page.recording, history)
    measured = [f"Measured ({claim.title}): {claim.word}. {claim.sentence}" for claim in measured_of(page.claims)]
    recorded = [f"Recorded: {line_of(run.snapshot(), no_reading)}", *filter(None, [whole_note(run.created)])]
    also = [
        [
            f"Also recorded: {other.shows}. {line_of(find_run(other.recording, history).snapshot(), no_reading)}",
            Verbatim(f"  tokendyno replay {other.recording}"),
        ]
        for other in page.also
    ]
    return [
        [Styled(page.title, "bold")],
        *([paragraph.replace("`", "")] for paragraph in page.text),
        [f"Claim: {page.claim} ({page.source})", *measured],
        [page.found],
        [*recorded, Verbatim(f"  tokendyno replay {page.recording}")],
        *also,
        [f"Run it here: {page.here.note}", Verbatim(f"  {shlex.join(_command(page.here))}")],
    ]


def _command(here: Here) -> list[str]:
    arms = [*(["--a", here.a] if here.a else []), "--b", here.b]
    if here.page == "batching":
        return ["tokendyno", "batch", *arms]
    work = ["--prompt", here.prompt, "--max-new-tokens", str(here.max_new_tokens)]
    return ["tokendyno", "compare", "--model", here.model, *arms, *work, *(["--ignore-eos"] if here.ignore_eos else [])]


def add_commands(add: Add) -> None:
    sub = add("story", tell, "guided pages, one idea each, with a recording; without a name the list", color=True)
    sub.add_argument("name", nargs="?", default="", metavar="NAME", help="one of the list")
