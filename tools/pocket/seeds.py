"""Ask the teacher for a story and begin it, because its own plots wander and its own beginnings are all alike."""

import random
from dataclasses import dataclass

from tools.pocket.grammar import beginning

ASKS = (
    "Write a children's story about {a} named {n} and {b} named {m}.",
    "Tell me a bedtime story about {n}, {a}, who lived {p}.",
    "Write a heartwarming story about {a} named {n}.",
    "Please write a story for young readers. It is about {a} named {n} and {b} named {m}.",
    "Write a funny story for children about {n} the {k}.",
)
THEMES = {
    "lost": "{n} has lost a {c} {t}.",
    "dark": "{n} is afraid of the dark.",
    "share": "{n} does not want to share.",
    "truth": "{n} learns to tell the truth.",
    "bird": "{n} finds a little bird.",
    "race": "There is a race.",
    "bake": "{n} wants to bake a cake.",
    "seed": "{n} plants a seed.",
    "newcomer": "{n} finds a new friend.",
    "storm": "There is a storm.",
    "stuck": "{n} is too curious.",
    "sleep": "{n} cannot sleep.",
    "snow": "It is the first snow of the winter.",
    "present": "It is a birthday story.",
    "wish": "{n} wants to fly.",
    "monster": "{n} is afraid of a monster.",
    "help": "{n} is very small.",
    "pet": "{n} has a pet.",
    "song": "{n} loves to sing.",
    "map": "There is a treasure map.",
    "sick": "{m} is sick.",
    "fight": "The two have a fight.",
    "lesson": "{n} learns something new.",
    "boat": "{n} goes sailing.",
}
SYSTEM = "You tell short stories for children."


@dataclass(frozen=True)
class Seed:
    """One request to the teacher; `opener` is ours, begins the answer and belongs to the story."""

    ask: str
    opener: str
    name: str


def draw(rng: random.Random) -> Seed:
    """Draw one seed."""
    opener, who = beginning(rng)
    ask = f"{rng.choice(ASKS)} {THEMES[who.plot]}".format(**who.slots)
    return Seed(ask, opener, who.slots["n"])


def prompt(seed: Seed) -> str:
    """Write the seed in the teacher's chat format (ChatML), with the opener as the start of its answer."""
    turns = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{seed.ask}<|im_end|>\n"
    return f"{turns}<|im_start|>assistant\n{seed.opener}"
