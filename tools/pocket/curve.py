"""Draw the loss curve of a training log.

python -m tools.pocket.curve --log tools/pocket/training-log.csv --out presets/models/pocket/loss.png
"""

import argparse
import csv
from pathlib import Path
from typing import NamedTuple


class Curve(NamedTuple):
    """Loss in nats a token over millions of training tokens, as logged and smoothed."""

    tokens_millions: list[float]
    loss: list[float]
    smooth: list[float]


def read(log: Path, weight: float = 0.6) -> Curve:
    """Read a log and smooth it with an exponential mean that corrects its start."""
    with log.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    tokens = [int(row["tokens"]) / 1e6 for row in rows]
    loss = [float(row["loss"]) for row in rows]
    smooth, mean = [], 0.0
    for count, value in enumerate(loss, 1):
        mean = weight * mean + (1 - weight) * value
        smooth.append(mean / (1 - weight**count))
    return Curve(tokens, loss, smooth)


def draw(curve: Curve, out: Path) -> None:
    """Draw the curve as a small PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.6), dpi=110)
    axes.plot(curve.tokens_millions, curve.loss, color="#4269d0", alpha=0.3, linewidth=0.8)
    axes.plot(curve.tokens_millions, curve.smooth, color="#4269d0", linewidth=1.6)
    low = min(curve.loss)
    axes.set(xlabel="training tokens (millions)", ylabel="loss (nats a token)", ylim=(0.9 * low, 4 * low))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    draw(read(args.log), args.out)


if __name__ == "__main__":
    main()
