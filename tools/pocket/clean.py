"""Keep the good part of a sampled story, or nothing: a small teacher starts well and then goes round in circles."""

import random
import re
from collections.abc import Sequence

from tools.pocket.grammar import closing

PLAIN = re.compile(r"""[A-Za-z .,!?;'"\n-]+""")
SENTENCE = re.compile(r"""[.!?]"?(?=\s|$)""")
WORD = re.compile(r"[A-Za-z']+")
RUN = 5  # a run of this many words may not come twice
MIN_WORDS = 55
MIN_VARIETY = 0.46  # different words over words
BAD = re.compile(r"\b(?:kill|die|dead|blood|God|Jesus|sex|gun|drunk|beer|wine|AI|drug)", re.IGNORECASE)
ODD = re.compile(r"\b(\w+) \1\b|\ba big (?:eyes|ears|legs|teeth|feet)\b|(?:\b\w+, ){3}")


def words(text: str) -> list[str]:
    """Split a text into lower-case words."""
    return WORD.findall(text.lower())


def circle(told: Sequence[str], size: int = RUN) -> int:
    """Give the index of the word that completes the first repeated run, or the number of words."""
    seen: set[tuple[str, ...]] = set()
    for at in range(len(told) - size + 1):
        run = tuple(told[at : at + size])
        if run in seen:
            return at + size - 1
        seen.add(run)
    return len(told)


def cut(text: str, ended: bool) -> tuple[str, bool]:
    """Cut at the last whole sentence before the first repeated run; tell whether the true end was kept."""
    stop = circle(words(text))
    ends = [match.end() for match in SENTENCE.finditer(text)]
    counts = [len(words(text[:end])) for end in ends]
    fit = [end for end, count in zip(ends, counts, strict=True) if count < stop or stop == counts[-1]]
    if not fit:
        return "", False
    return text[: fit[-1]], ended and fit[-1] == ends[-1]


def clean(opener: str, answer: str, name: str, ended: bool, seed: int) -> str | None:
    """Give the story to keep, with a closing sentence where the teacher gave none."""
    text = re.sub(r"\s*\n\s*", "\n", (opener + answer).strip())
    text = re.sub(r" {2,}", " ", text)
    text, whole = cut(text, ended)
    told = words(text)
    variety = len(set(told)) / max(1, len(told))
    if len(told) < MIN_WORDS or variety < MIN_VARIETY or not PLAIN.fullmatch(text):
        return None
    if BAD.search(text) or ODD.search(text) or text.count('"') % 2:
        return None
    return text if whole else f"{text}\n{closing(random.Random(seed), name)}"
