"""Text of a drawn prompt: simple sentences, different for every seed, so that no request shares another's prefix."""

import random

_NAMES = ("Pip", "Tim", "Lily", "Sam", "Mia", "Ben", "Anna", "Max", "Zoe", "Leo", "Sue", "Tom")
_VERBS = ("found", "saw", "liked", "took", "lost", "made", "wanted", "gave away", "hid", "looked for", "painted")
_COLOURS = ("red", "blue", "green", "big", "small", "old", "new", "shiny", "soft", "happy", "yellow", "funny")
_THINGS = ("ball", "dog", "cat", "tree", "box", "boat", "bird", "cake", "hat", "car", "flower", "book", "stone")
_PLACES = (
    "in the garden",
    "at the park",
    "by the lake",
    "in the house",
    "on the hill",
    "near the river",
    "at school",
    "in the forest",
    "on the beach",
    "behind the door",
)


def prompt_text(seed: int, words: int) -> str:
    """At least so many words, which every tokenizer turns into at least as many tokens."""
    chance = random.Random(seed).random
    found: list[str] = []

    def one(of: tuple[str, ...]) -> str:
        return of[int(chance() * len(of))]

    count = 0
    while count < words:
        sentence = f"{one(_NAMES)} {one(_VERBS)} a {one(_COLOURS)} {one(_THINGS)} {one(_PLACES)}."
        found.append(sentence)
        count += len(sentence.split())
    return " ".join(found)
