"""Writes presets/recipes.toml: what number formats cost in quality on a small real model, for advice about models
whose weights are random. `python -m tools.recipes --models-dir FOLDER`, which holds `MODEL` in bfloat16."""

import argparse
import datetime

import tokendyno as td
from tokendyno.backend.errors import InputError
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.views.quality import ROUNDING_NATS

MODEL = "SmolLM2-135M-Instruct-bf16"
POSITIONS = 96
HALF = (("dtype", "float16"), ("dtype", "float32"))
ROUNDS = 40
"""A `Choice.loss` from which on numbers are rounded to 8 bits or fewer."""


def main() -> None:
    """Read the texts with each choice that rounds, against the model as it comes in bfloat16."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models-dir", required=True)
    folder = parser.parse_args().models_dir
    lines = [
        f"# Written by python -m tools.recipes on {datetime.date.today()}: {MODEL} in bfloat16 against the same with",
        f"# each of these, {POSITIONS} positions of each text of tokendyno. Up to {ROUNDING_NATS:g} nats are rounding.",
        "",
        f'model = "{MODEL}"',
        "",
    ]
    for axis in all_axes():
        for choice in axis.choices:
            rounds = choice.loss is not None and choice.loss >= ROUNDS and not axis.many_requests
            if not rounds and (axis.name, choice.name) not in HALF:
                continue
            arm = {"dtype": "bfloat16"} | {axis.name: choice.name}
            try:
                result = td.quality(MODEL, {"dtype": "bfloat16"}, arm, positions=POSITIONS, models_dir=folder)
            except (InputError, td.RunFailed) as error:
                print(f"{axis.name}={choice.name}: {error}")
                continue
            quality = result.document
            lines += [
                "[[recipes]]",
                f'choice = "{axis.name}={choice.name}"',
                f"kl_nats = {quality.kl_nats:.4g}",
                f"top1_agreement = {quality.top1_agreement:.4g}",
                f"perplexity_ratio = {quality.perplexity_ratio:.4g}",
                f'cost = "{quality.cost}"',
                "",
            ]
            print(lines[-6], lines[-5])
    (PRESETS / "recipes.toml").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
