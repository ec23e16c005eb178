"""A run as a picture of 1200 by 630 pixels, the size at which previews of links are shown: its verdict, its arms, and
their curves. Drawn with Pillow, which Gradio needs anyway, in the font that Pillow brings along."""

import bisect
import functools
import io
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from tokendyno.backend.optimizations import BESIDE
from tokendyno.backend.units import bytes_text, three
from tokendyno.backend.views.share import Curves, Shared

WIDTH, HEIGHT = 1200, 630
SCALE = 2
"""Lines are drawn at so many times the size and then made smaller, which smooths them."""

MARGIN, GAP = 56, 16
PAPER, INK, DIM, GRID = "#ffffff", "#1b2230", "#586174", "#e1e5eb"
COLOURS = ("#4269d0", "#ff725c", "#3ca951", "#a463f2")
COLOURS_KEPT = 64
"""More than smoothed edges show: a fifth of the bytes of a picture with all colours."""

WIDTHS = (6, 3)
"""Of the curves of both arms, so that they are told apart without colour."""

MOST_CHARACTERS = 500
"""Of a text: a record from a file may hold a longer one, and laying it out takes time."""

PLAIN = str.maketrans({"\u00d7": "x", "\u2212": "-", "\u2013": "-", "\u2192": "to"})
"""Signs of our sentences that the font lacks, and would draw as boxes."""

Point = tuple[float, float]


def picture(run: Shared) -> bytes:
    """The PNG."""
    image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), PAPER)
    sheet = _Sheet(ImageDraw.Draw(image))
    sheet.text((MARGIN, 36), "tokendyno", 24, INK, bold=True)
    sheet.text((MARGIN + sheet.width("tokendyno", 24) + GAP, 36), run.model, 24, DIM, max_width=800)
    top = 84
    for line in sheet.wrapped(run.sentence, 40, WIDTH - 2 * MARGIN, max_lines=3):
        sheet.text((MARGIN, top), line, 40, INK, bold=True)
        top += 52
    top += 12
    labels = _differing([arm.label for arm in run.arms])
    for at, (arm, label) in enumerate(zip(run.arms, labels, strict=True)):
        sheet.line([(MARGIN, top + 15), (MARGIN + 44, top + 15)], at)
        sheet.text((MARGIN + 60, top), f"{arm.name}: {label}", 24, INK, max_width=WIDTH - 2 * MARGIN - 60)
        top += 36
    if run.curves is not None:
        _chart(sheet, run.curves, (MARGIN, top + 16, WIDTH - MARGIN, HEIGHT - 64))
    sheet.text((MARGIN, HEIGHT - 42), run.machine, 20, DIM, max_width=WIDTH - 2 * MARGIN)
    out = io.BytesIO()
    small = image.resize((WIDTH, HEIGHT), Image.Resampling.BOX)
    small.quantize(COLOURS_KEPT, Image.Quantize.FASTOCTREE).save(out, "PNG")
    return out.getvalue()


def _differing(labels: Sequence[str]) -> list[str]:
    """Of the arms' choices those that they do not share."""
    parts = [label.split(BESIDE) for label in labels]
    common = set(parts[0]).intersection(*parts[1:])
    if len(set(labels)) < 2 or not common:
        return list(labels)
    return [BESIDE.join(part for part in choices if part not in common) or "without it" for choices in parts]


def _chart(sheet: "_Sheet", curves: Curves, box: tuple[float, float, float, float]) -> None:
    """Curves from 0 on, with the largest value of each axis at its end."""
    left, top, right, bottom = box
    sheet.text((left, top), curves.title, 20, DIM)
    top, bottom = top + 34, bottom - 30
    points = [point for line in curves.lines for point in line]
    far, high = max(x for x, _ in points) or 1.0, max(y for _, y in points) or 1.0
    largest = " ".join(bytes_text(high)) if curves.y_unit == "bytes" else f"{high:,.0f}"
    inner = right - 24 - sheet.width(largest, 20)
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * (bottom - top)
        sheet.draw.line([(left * SCALE, y * SCALE), (inner * SCALE, y * SCALE)], GRID, SCALE)
    sheet.text((inner + 12, top - 12), largest, 20, DIM)
    sheet.text((left, bottom + 6), "0", 20, DIM)
    end = f"{three(far) if curves.x_unit == 's' else f'{far:,.0f}'} {curves.x_unit}"
    sheet.text((inner - sheet.width(end, 20), bottom + 6), end, 20, DIM)
    for at, line in enumerate(curves.lines):
        sheet.line([(left + x / far * (inner - left), bottom - y / high * (bottom - top)) for x, y in line], at)


@functools.cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size * SCALE)
    assert isinstance(font, ImageFont.FreeTypeFont), "Pillow is built with FreeType"
    return font


class _Sheet:
    """What is drawn on. Sizes and places are in pixels of the finished picture."""

    def __init__(self, draw: ImageDraw.ImageDraw) -> None:
        self.draw = draw

    def width(self, text: str, size: int) -> float:
        return _font(size).getlength(text) / SCALE

    def text(self, at: Point, text: str, size: int, colour: str, bold: bool = False, max_width: float = WIDTH) -> None:
        """One line of text, cut where it is wider than `max_width`. The font has one weight: `bold` strokes it."""
        place = (at[0] * SCALE, at[1] * SCALE)
        stroke = SCALE / 2 if bold else 0
        self.draw.text(place, self.cut(text, size, max_width), colour, _font(size), stroke_width=stroke)

    def cut(self, text: str, size: int, max_width: float) -> str:
        """The text, or as much of it as has room, with an ellipsis."""
        text = " ".join(text[:MOST_CHARACTERS].translate(PLAIN).split())
        if self.width(text, size) <= max_width:
            return text
        fits = bisect.bisect_right(range(len(text)), max_width, key=lambda end: self.width(f"{text[:end]}…", size)) - 1
        return f"{text[: max(0, fits)].rstrip(' ,;')}…"

    def wrapped(self, text: str, size: int, width: float, max_lines: int) -> list[str]:
        """The text in at most so many lines."""
        lines, words = [""], text[:MOST_CHARACTERS].translate(PLAIN).split()
        for at, word in enumerate(words):
            longer = f"{lines[-1]} {word}".strip()
            if self.width(longer, size) <= width or not lines[-1]:
                lines[-1] = longer
            elif len(lines) < max_lines:
                lines.append(word)
            else:
                lines[-1] = " ".join([lines[-1], *words[at:]])
                break
        return [self.cut(line, size, width) for line in lines]

    def line(self, points: Sequence[Point], arm: int) -> None:
        """A curve in the colour and the width of an arm."""
        scaled = [(x * SCALE, y * SCALE) for x, y in points]
        self.draw.line(scaled, COLOURS[arm % len(COLOURS)], WIDTHS[arm % 2] * SCALE, joint="curve")
