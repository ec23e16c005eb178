"""Write the model cards: what evaluate and train measured is filled in; the sentences around it, with the
counts of the corpus, stand in the templates.

    python -m tools.pocket.card --evaluation tools/pocket/evaluation.json --training tools/pocket/training.json \\
        --models presets/models
"""

import argparse
import json
from pathlib import Path
from typing import Any

from tools.pocket.evaluate import PROMPTS

TEMPLATES = Path(__file__).parent / "cards"


def table(rows: list[tuple[str, ...]]) -> str:
    """Write a Markdown table; the first row is its head."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def perplexities(found: dict[str, dict[str, float]]) -> str:
    """Perplexity by way of running the weights and kind of held-out story."""
    head = ("weights", "stories told by the grammar", "stories sampled from the teacher")
    return table([head, *((name, f"{row['told']:.3f}", f"{row['sampled']:.3f}") for name, row in found.items())])


def variety(result: dict[str, Any]) -> str:
    """Variety and loops, greedy beside sampled."""
    rows: list[tuple[str, ...]] = [("measure", "greedy", "sampled")]
    for key in ("distinct_1", "distinct_2", "distinct_4", "repetition_rate"):
        rows.append((key.replace("_", " "), *(f"{result[way][key]:.3f}" for way in ("greedy", "sampled"))))
    loops = (f"{result[way]['without_loops']} of {len(PROMPTS)}" for way in ("greedy", "sampled"))
    return table([*rows, ("texts without a loop", *loops)])


def texts(prompts: tuple[str, ...], found: list[str]) -> str:
    """Continuations, uncut, the prompt in bold; the end token stands where the model wrote it."""
    blocks = []
    for number, (prompt, text) in enumerate(zip(prompts, found, strict=True), 1):
        blocks.append(f"**{number}. {prompt}**\n\n```text\n{text.strip(chr(10))}\n```")
    return "\n\n".join(blocks)


def values(result: dict[str, Any], training: dict[str, Any]) -> dict[str, str]:
    """Give every slot of the templates."""
    held = result["held_out_tokens"]
    losses = training["held_out_loss"]
    return {
        "STEPS": f"{training['steps']:,}",
        "TOKENS": f"{training['tokens'] / 1e6:,.0f} million",
        "SECONDS": f"{training['seconds']:.0f}",
        "LOSS_TOLD": f"{losses['told_1024']:.3f}",
        "LOSS_SAMPLED": f"{losses['sampled_1024']:.3f}",
        "LOSS_TOLD_LONG": f"{losses['told_4096']:.3f}",
        "LOSS_SAMPLED_LONG": f"{losses['sampled_4096']:.3f}",
        "HELD_TOLD": f"{held['told']:,}",
        "HELD_SAMPLED": f"{held['sampled']:,}",
        "PERPLEXITY": perplexities(result["perplexity"]),
        "VARIETY": variety(result),
        "WITHOUT_LOOPS": str(result["greedy"]["without_loops"]),
        "LOAD_S": f"{result['load_s']:.2f}",
        "TOKENS_PER_S": f"{result['tokens_per_s']:.0f}",
        "GREEDY": texts(PROMPTS, result["greedy"]["texts"]),
        "SAMPLED": texts(PROMPTS, result["sampled"]["texts"]),
        "LONG": texts(PROMPTS[:1], [result["long_sampled"]["text"]]),
        "LONG_REPETITION": f"{result['long_sampled']['repetition_rate']:.3f}",
        "PPL_BF16": f"{result['perplexity']['bf16']['told']:.3f}",
        "PPL_MXFP4": f"{result['perplexity']['mxfp4']['told']:.3f}",
        "PPL_BF16_SAMPLED": f"{result['perplexity']['bf16']['sampled']:.3f}",
        "PPL_MXFP4_SAMPLED": f"{result['perplexity']['mxfp4']['sampled']:.3f}",
    }


def fill(template: str, slots: dict[str, str]) -> str:
    """Put the values into a template."""
    for name, value in slots.items():
        template = template.replace("{{" + name + "}}", value)
    if "{{" in template:
        raise SystemExit("a slot of the template is unknown: " + template[template.index("{{") :][:40])
    return template


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--evaluation", type=Path, required=True)
    parser.add_argument("--training", type=Path, required=True)
    parser.add_argument("--models", type=Path, required=True)
    args = parser.parse_args()
    result = json.loads(args.evaluation.read_text(encoding="utf-8"))
    slots = values(result, json.loads(args.training.read_text(encoding="utf-8")))
    for name in ("pocket", "pocket-mxfp4"):
        template = (TEMPLATES / f"{name}.md").read_text(encoding="utf-8")
        (args.models / name / "README.md").write_text(fill(template, slots), encoding="utf-8")


if __name__ == "__main__":
    main()
