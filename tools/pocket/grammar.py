# ruff: noqa: SIM905
"""Tell stories from hand-written plots, whole or only their beginning for the teacher to continue."""

import random
import re
from dataclasses import dataclass

from tools.pocket.plots import CLOSING, DAY, END, INTRO, PLOTS
from tools.pocket.plots_more import ASIDES, NEXT, PLOTS_MORE

ALL_PLOTS = PLOTS | PLOTS_MORE
CHOICE = re.compile(r"\[([^\]]+)\]")

GIRLS = (
    "Lily Mia Anna Lucy Rosie Sue Ella Molly Daisy Nora Ruby Ivy Emma Sophie Grace Alice Jane Kate Amy Clara "
    "Hazel Luna Poppy Stella Violet Zoe Bella Dora Fiona Holly Kitty Maggie Olive Penny Sally Wendy Betty "
    "Elsie Gina Iris Lola Nell Pearl Tilly Vera Willow"
).split()
BOYS = (
    "Tom Max Ben Sam Leo Tim Jack Finn Pip Bob Toby Oscar Ned Charlie Henry Oliver Peter Billy Danny Freddy "
    "George Jasper Milo Rex Teddy Walter Andy Carl Eddie Gus Jim Larry Nick Paul Ralph Theo Arthur Clive "
    "Frank Hugo Joe Monty Otto Robin Will"
).split()
STARTS = "B D F G H J K L M N P R S T V W Z Br Dr Fl Gr Sh Tr".split()
MIDDLES = "b;d;g;k;l;ll;m;mm;n;nn;p;r;rr;s;t;v;z;".split(";")
ANIMALS = (
    "cat dog bird frog bear mouse fox rabbit duck lion turtle owl pig horse squirrel penguin goat kitten "
    "puppy elephant monkey hedgehog deer sheep cow tiger giraffe donkey beaver otter raccoon goose hen "
    "badger mole lamb pony panda zebra koala robot dragon"
).split()
FEMALE = "girl princess queen fairy".split()
MALE = "boy prince king pirate".split()
FEELINGS = (
    "happy brave shy curious kind proud sleepy clever gentle lazy quiet busy cheerful grumpy careful funny "
    "hungry lonely little small young silly friendly playful stubborn calm"
).split()
PLACES = (
    "in the forest;in a small village;on a farm;by the sea;in the mountains;in a little town;in an old barn;"
    "by the lake;by the river;in a castle;on an island;on a green hill;under a big tree;in a treehouse;"
    "in a meadow;near the woods;in a little house;at the edge of the forest;in a cozy house;near an old mill"
).split(";")
THINGS = (
    "ball kite hat drum box doll boat whistle button scarf mitten shell spoon lantern flute bell basket "
    "blanket car train balloon cup brush ring book sled wagon pillow sock bear star"
).split()
COLORS = "red blue green yellow brown white golden silver orange pink shiny".split()
FOODS = (
    "apples;cookies;strawberries;bread and honey;pears;pancakes;soup;nuts;cake;pie;cherries;sandwiches;"
    "carrots;berries;cheese;plums"
).split(";")
WEATHER = "sunny rainy windy cold warm cloudy bright".split()
CALM = [
    "lost",
    "bird",
    "bake",
    "seed",
    "storm",
    "snow",
    "map",
    "sick",
    "boat",
    "wish",
    "pet",
    "sleep",
]  # plots that may follow another
FILL_KINDS = "woman man farmer owl bear goat turtle".split()


@dataclass(frozen=True)
class Cast:
    """Who and what a story is about; the same from its first sentence to its last."""

    slots: dict[str, str]
    plot: str


def article(phrase: str) -> str:
    """Put a or an before a phrase."""
    return f"{'an' if phrase[0] in 'aeiou' else 'a'} {phrase}"


def capital(text: str) -> str:
    """Start a text with a capital letter."""
    return text[:1].upper() + text[1:]


def invented(rng: random.Random) -> str:
    """Make a name up, so that a name is learned as something to carry along and not as a word to know."""
    parts = (
        rng.choice(STARTS),
        rng.choice("aeiou"),
        rng.choice(MIDDLES),
        rng.choice(("a", "o", "i", "y", "u", "e")),
    )
    return "".join(parts)


def someone(rng: random.Random, taken: str) -> tuple[str, str, bool]:
    """Draw a name that is not taken, a kind, and whether she is female."""
    female = rng.random() < 0.5
    name = rng.choice([name for name in (GIRLS if female else BOYS) if name != taken])
    if rng.random() < 0.15:
        name = invented(rng)
    kind = rng.choice(FEMALE if female else MALE) if rng.random() < 0.3 else rng.choice(ANIMALS)
    return name, kind, female


def cast(rng: random.Random) -> Cast:
    """Draw the cast of one story."""
    name, kind, female = someone(rng, "")
    friend, friend_kind, friend_female = someone(rng, name)
    feeling, other = rng.sample(FEELINGS, 2)
    food, second = rng.sample(FOODS, 2)
    place = rng.choice(PLACES)
    he, him, his = ("she", "her", "her") if female else ("he", "him", "his")
    m_he, m_him, m_his = ("she", "her", "her") if friend_female else ("he", "him", "his")
    slots = {
        "n": name,
        "k": kind,
        "f": feeling,
        "a": article(f"{feeling} {kind}"),
        "m": friend,
        "l": friend_kind,
        "b": article(f"{other} {friend_kind}"),
        "b2": capital(article(f"{other} {friend_kind}")),
        "k2": rng.choice(FILL_KINDS),
        "p": place,
        "P": capital(place),
        "t": rng.choice(THINGS),
        "c": rng.choice(COLORS),
        "d": rng.choice(WEATHER),
        "food": food,
        "food2": second,
        "he": he,
        "He": capital(he),
        "him": him,
        "his": his,
        "His": capital(his),
        "him_self": f"{him}self",
        "m_he": m_he,
        "m_He": capital(m_he),
        "m_him": m_him,
        "m_his": m_his,
        "m_His": capital(m_his),
        "his_grand": capital(f"{his} {rng.choice(('grandmother', 'grandfather', 'uncle'))}"),
    }
    return Cast(slots, rng.choice(list(ALL_PLOTS)))


def say(rng: random.Random, ways: tuple[str, ...], who: Cast) -> str:
    """Tell a beat in one of its ways: draw the bracketed words, then fill the slots."""
    way = CHOICE.sub(lambda match: rng.choice(match.group(1).split("|")), rng.choice(ways))
    return way.format(day=rng.choice(DAY).format(**who.slots), **who.slots)


def episode(rng: random.Random, who: Cast) -> list[str]:
    """Write the beats of one plot, a side remark between them here and there once the friend is known."""
    told: list[str] = []
    asides = rng.sample(ASIDES, 2)
    for ways in ALL_PLOTS[who.plot]:
        if asides and any(who.slots["m"] in beat for beat in told) and rng.random() < 0.3:
            told.append(say(rng, (asides.pop(),), who))
        told.append(say(rng, ways, who))
    return told


def beats(rng: random.Random, who: Cast) -> list[str]:
    """Write the beats of a story in order, an introduction first and mostly an end last."""
    told = [say(rng, INTRO, who)] if rng.random() < 0.9 else []
    told += episode(rng, who)
    if rng.random() < 0.12:
        again = Cast(who.slots, rng.choice([plot for plot in CALM if plot != who.plot]))
        told += [say(rng, NEXT, who), *episode(rng, again)]
    if rng.random() < 0.85:
        told.append(say(rng, END, who))
    return told


def join(rng: random.Random, told: list[str]) -> str:
    """Join beats into paragraphs."""
    text = told[0]
    for beat in told[1:]:
        text += (" " if rng.random() < 0.6 else "\n") + beat
    return text


def story(rng: random.Random) -> tuple[str, str]:
    """Tell a whole story; give its plot and its text."""
    who = cast(rng)
    return who.plot, join(rng, beats(rng, who))


def beginning(rng: random.Random) -> tuple[str, Cast]:
    """Tell the first two to four beats of a story."""
    who = cast(rng)
    return join(rng, beats(rng, who)[: rng.choice((1, 1, 2, 2, 3))]), who


def closing(rng: random.Random, name: str) -> str:
    """Write a last sentence for a story that was cut."""
    return rng.choice(CLOSING).format(n=name)
