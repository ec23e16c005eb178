"""What number formats cost in quality on a small real model, from `presets/recipes.toml`: for models whose weights are
random, which have no quality of their own. `python -m tools.recipes` writes it."""

import functools

import msgspec

from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.paths import PRESETS


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A choice, as axis=choice, against the model as it comes in bfloat16. `cost`: none, rounding, small or large."""

    choice: str
    kl_nats: float
    top1_agreement: float
    perplexity_ratio: float
    cost: str


class Recipes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`model`: with which they were read."""

    model: str
    recipes: list[Recipe]


@functools.cache
def recipes() -> Recipes:
    """All of them."""
    return read_toml(PRESETS / "recipes.toml", Recipes)


def worst_recipe(choices: str) -> Recipe | None:
    """The dearest of several choices with commas between; None where one was not read."""
    known = {recipe.choice: recipe for recipe in recipes().recipes}
    parts = [known.get(part) for part in choices.split(",")]
    return None if None in parts else max(filter(None, parts), key=lambda recipe: recipe.kl_nats)
