"""`tokendyno quality`: what arm B costs in quality, on texts that both arms are given."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backend.cli.arms import written_arms
from backend.cli.commands import perform
from backend.cli.files import read_prompt
from backend.cli.quality_table import quality_table
from backend.config import Request, reading_of
from backend.errors import InputError
from backend.quality import Quality, QualityText
from backend.quality.presets import shipped_texts
from backend.runs.log import RunLog
from backend.runs.run import Run
from backend.terminal import screen_of
from backend.views.quality_document import quality_document


def quality(options: argparse.Namespace) -> int:
    """Read the texts with both arms."""

    def shown(current: Run, runs: RunLog) -> str:
        read = any(arm.scores for arm in current.arms.values())
        return quality_table(current.snapshot(), screen_of(sys.stdout, options.color), options.all) if read else ""

    return perform(options, _request(options), lambda current, checked, runs: quality_document(current), shown)


def _request(options: argparse.Namespace) -> Request:
    if options.only_given and not options.text:
        raise InputError("--only-given leaves out the texts of tokendyno, and none was given. Add --text FILE.")
    texts = [QualityText(path.stem, read_prompt(path, "--text")) for path in options.text or []]
    texts += [] if options.only_given else shipped_texts()
    asked = Quality(texts, options.context, options.positions)
    work = reading_of(asked)
    return Request(options.model, written_arms(options, {"A": options.a, "B": options.b}, work), work, None, asked)


def add_quality(add: Callable[..., argparse.ArgumentParser], arm_help: str, add_model: Any) -> argparse.ArgumentParser:
    """The command's options."""
    sub = add("quality", quality, "compare what two arms predict on given texts: what a speed-up costs in quality")
    sub.add_argument("--a", default="", metavar="ARM", help=f"arm A, the reference: {arm_help}")
    sub.add_argument("--b", default="", metavar="ARM", help="arm B, likewise")
    add_model(sub)
    sub.add_argument(
        "--text", type=Path, action="append", metavar="FILE",
        help="a UTF-8 text of your own, beside those that come with tokendyno; may be given several times",
    )  # fmt: skip
    sub.add_argument("--only-given", action="store_true", help="with --text: read no other texts")
    sub.add_argument("--context", type=int, default=16, metavar="N", help="tokens of each text that are its prompt")
    sub.add_argument("--positions", type=int, default=192, metavar="N", help="tokens to predict in each text, at most")
    return sub
