"""`tokendyno quality`: what arm B costs in quality, on texts that both arms are given."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from backend.arms.parse import parse_arm
from backend.cli.commands import BAD_INPUT, FAILED, OK, STOPPED, CommandFailed
from backend.cli.files import check_folder, check_writable, read_prompt, write_json
from backend.cli.progress import follow, say
from backend.cli.quality_table import quality_table
from backend.config import ArmRequest, Request, reading_of
from backend.executors import open_bench
from backend.quality import Quality, QualityText
from backend.quality.presets import shipped_texts
from backend.terminal import screen_of
from backend.views.quality_document import quality_document


def quality(options: argparse.Namespace) -> int:
    """Read the texts with both arms."""
    check_writable(options.json)
    check_folder(options.models_dir)
    request = _request(options)
    bench = open_bench(options.history, options.models_dir)
    for message in bench.messages:
        say(f"note: {message}")
    bench.check(request)
    bench.start()
    try:
        current = bench.runs.get(bench.submit(request))
        assert current is not None
        for arm in current.created.arms:
            for verdict in arm.verdicts:
                say(f"{verdict.level} (arm {arm.name}, {verdict.axis}): {verdict.reason}")
        stopped = follow(bench, current)
        if options.json != "-" and any(arm.scores for arm in current.arms.values()):
            print(quality_table(current.snapshot(), screen_of(sys.stdout, options.color), options.all))
        write_json(options.json, quality_document(current))
        if not stopped and current.status != "done":
            raise CommandFailed(current.message, BAD_INPUT if current.bad_input else FAILED)
        return STOPPED if stopped else OK
    finally:
        bench.close()


def _request(options: argparse.Namespace) -> Request:
    texts = [] if options.only_given else shipped_texts()
    texts += [QualityText(path.stem, read_prompt(path)) for path in options.text or []]
    asked = Quality(texts, options.context, options.positions)
    arms = [
        ArmRequest(name, dict(parse_arm(options.model, text).choices))
        for name, text in (("A", options.a), ("B", options.b))
    ]
    return Request(options.model, arms, reading_of(asked), None, asked)


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
