"""The picture of a run: of the size that previews have, in the colours of the arms, with nothing over its edge."""

import io
from typing import Any

import msgspec
import pytest
from PIL import Image, ImageDraw, ImageFont

from tests.browser.stored_runs import EVIL, evil
from tests.support.runs import created, ended
from tokendyno.backend.recordings.recorded_runs import shipped_id, shipped_names, shipped_records
from tokendyno.backend.runs.run import folded
from tokendyno.backend.views.share import Shared, shared
from tokendyno.ui.picture import HEIGHT, MARGIN, WIDTH, picture


def drawn(run: Shared) -> Any:
    data = picture(run)
    assert len(data) < 60_000
    image = Image.open(io.BytesIO(data))
    assert image.format == "PNG" and image.size == (WIDTH, HEIGHT) == (1200, 630)
    return image.convert("RGB")


def coloured(image: Any, box: tuple[int, int, int, int]) -> set[str]:
    """Arms whose colours are seen in a part of the picture."""
    arms = set()
    for _, (red, _, blue) in image.crop(box).getcolors(1 << 20):
        arms |= {"A"} if blue - red > 90 else {"B"} if red - blue > 90 else set()
    return arms


def test_both_arms_are_named_and_drawn() -> None:
    image = drawn(shared(folded(shipped_records("recorded-compile"))))
    assert coloured(image, (0, 180, WIDTH, 300)) == coloured(image, (0, 320, WIDTH, HEIGHT)) == {"A", "B"}


@pytest.mark.parametrize("name", shipped_names())
def test_the_font_has_every_letter_that_is_drawn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    monkeypatch.setattr(ImageDraw.ImageDraw, "text", lambda self, at, text, *_, **__: texts.append(text))
    picture(shared(folded(shipped_records(shipped_id(name)))))
    font = ImageFont.load_default(40)
    box = bytes(font.getmask("\uffff"))
    assert [letter for letter in set("".join(texts)) if bytes(font.getmask(letter)) == box] == []


def test_a_run_without_a_token_has_a_picture_too() -> None:
    assert coloured(drawn(shared(folded([created(), ended("failed", "no memory")]))), (0, 320, WIDTH, HEIGHT)) == set()


def test_no_text_however_long_is_drawn_over_the_edge() -> None:
    long = f"{EVIL} {'Wide' * 9_999}"
    run = shared(folded(evil()))._replace(model=long, sentence=f"{long} {long}", machine=long)
    run = run._replace(arms=[msgspec.structs.replace(arm, label=long) for arm in run.arms])
    edge = drawn(run).crop((WIDTH - MARGIN + 4, 0, WIDTH, HEIGHT))
    assert all(min(colour) > 250 for _, colour in edge.getcolors(1 << 20)), "nothing but paper"
