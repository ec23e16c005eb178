"""The command that serves an arm: `transformers serve` where it can say the arm, else `tokendyno serve`."""

import shlex

from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import defaults

ATTENTIONS = ("eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention")
QUANTIZATIONS = {"bnb-int8": "bnb-8bit", "bnb-nf4-double": "bnb-4bit"}
"""What `transformers serve` 5.22 takes (`transformers/cli/serving/model_manager.py`)."""

CONTINUOUS = {"page_size": "--cb-block-size", "batch_tokens": "--cb-max-batch-tokens"}


def serve_line(facts: ModelFacts, checked: Checked) -> tuple[str, str]:
    """The command, and why it is not that of transformers, "" if it is; "" where nothing serves it."""
    if facts.kind == "encoder":
        return "", ""
    if checked.requested["batching"] == "static":
        return "", "Static batches are of requests that are all known beforehand: no server has them."
    started = defaults()
    chosen = {axis: choice for axis, choice in checked.requested.items() if choice != started[axis]}
    own = f"tokendyno serve --model {shlex.quote(facts.model)}" + (
        f" --arm {shlex.quote(arm_text(chosen))}" if chosen else ""
    )
    source = checked.plan.load.source
    if source.kind not in ("hub", "folder", "embedded"):
        return own, "transformers serve loads models of the Hub and folders."
    options, left = list[str](), dict(chosen)
    if left.get("batching") == "continuous":
        left.pop("batching")
        options.append("--continuous-batching")
        options += [f"{option} {left.pop(axis)}" for axis, option in CONTINUOUS.items() if axis in left]
    left.pop("dtype", None)
    if (dtype := checked.plan.load.dtype) != "auto":  # which the arm may have left to tokendyno
        options.append(f"--dtype {dtype}")
    if left.get("quantization") in QUANTIZATIONS:
        options.append(f"--quantization {QUANTIZATIONS[left.pop('quantization')]}")
    if left.get("attention") in ATTENTIONS:
        options.append(f"--attn-implementation {left.pop('attention')}")
    if left.get("cache") == "static" and left.get("compile") == "reduce-overhead":
        left.pop("cache")
        left.pop("compile")
        options.append("--compile")  # a static cache, for which transformers compiles in this mode
    if left:
        names = ", ".join(f"{axis}={choice}" for axis, choice in left.items())
        return own, f"transformers serve has no option for {names}."
    return " ".join(["transformers serve", shlex.quote(source.repo or source.path), *options]), ""
