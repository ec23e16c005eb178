"""`tokendyno quality`: what arm B costs in quality, on texts that both arms are given."""

import argparse

from tokendyno.backend.cli.commands import perform
from tokendyno.backend.cli.files import read_prompt
from tokendyno.backend.cli.options import ARM_HELP, Add, add_all, add_model, add_number, add_texts, written_arms
from tokendyno.backend.cli.stored import add_history_option
from tokendyno.backend.config import Request, reading_of
from tokendyno.backend.errors import InputError
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.quality.texts import MAX_CONTEXT, MAX_POSITIONS, MIN_POSITIONS, shipped_texts


def quality(options: argparse.Namespace) -> int:
    return perform(options, quality_of(options))


def quality_of(options: argparse.Namespace) -> Request:
    if options.only_given and not options.text:
        raise InputError("--only-given leaves out the texts of tokendyno, and none was given. Add --text FILE.")
    texts = [QualityText(path.stem, read_prompt(path, "--text")) for path in options.text or []]
    texts += [] if options.only_given else shipped_texts()
    reading = Quality(texts, options.context, options.positions)
    work = reading_of(reading)
    return Request(options.model, written_arms(options, {"A": options.a, "B": options.b}, work), work, None, reading)


def add_commands(add: Add) -> None:
    summary = "compare what two arms predict on given texts: what a speed-up costs in quality"
    details = "What the figures mean: docs/metrics.md. A GGUF file is read dense: arms that quantize need a folder."
    sub = add("quality", quality, summary, details, json=True)
    sub.add_argument("--a", default="", metavar="ARM", help=f"arm A, the reference: {ARM_HELP}")
    sub.add_argument("--b", default="", metavar="ARM", help="arm B, likewise")
    add_model(sub)
    add_texts(sub, "a UTF-8 text of your own, beside those that come with tokendyno; may be given several times")
    sub.add_argument("--only-given", action="store_true", help="with --text: read no other texts")
    add_number(sub, "--context", 16, "tokens of each text that are its prompt", 1, MAX_CONTEXT)
    add_number(sub, "--positions", 192, "tokens to predict in each text, at most", MIN_POSITIONS, MAX_POSITIONS)
    add_history_option(sub)
    add_all(sub)
