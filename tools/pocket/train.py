# mypy: disable-error-code="misc, no-untyped-call, untyped-decorator"
"""Train the model from scratch: `python -m tools.pocket.train --data FOLDER --out FOLDER --steps 4052`.

transformers' own gpt-oss in the shape of presets/models/pocket. Muon takes the matrices of attention, AdamW the rest.
The learning rate warms up, stays, and falls to zero over the last two fifths; the last part of the run reads rows of
4,096 tokens, so that every position the configuration promises was trained. The weights kept are an average over the
last steps.
"""

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import GptOssConfig, GptOssForCausalLM

from tokendyno.backend.paths import PRESETS
from tools.pocket.dataset import Stories, load, rows

SEED = 20_262
SHAPE = PRESETS / "models" / "pocket" / "config.json"
TINY = {
    "hidden_size": 64,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "layer_types": None,
}


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the outcome, apart from the data. `tokens_at_once`: of a step, between two backwards."""

    lr: float = 3e-3
    muon_lr: float = 0.02
    tokens_a_step: int = 131_072
    tokens_at_once: int = 16_384
    short: int = 1024
    long: int = 4096
    long_share: float = 0.15
    warmup: int = 60
    fall: float = 0.4
    average: float = 0.98

    def share(self, step: int, steps: int) -> float:
        """Of the peak learning rate."""
        left = (steps - step) / max(1.0, self.fall * steps)
        return min(1.0, (step + 1) / self.warmup, max(0.0, left))


def new_model(changes: dict[str, Any]) -> GptOssForCausalLM:
    """Small weights, smaller still where a layer writes into the residual stream."""
    torch.manual_seed(SEED)
    config = GptOssConfig(**json.loads(SHAPE.read_text()) | changes | {"dtype": "float32"})
    config._attn_implementation = "eager"
    model = GptOssForCausalLM(config)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj")):
                weight /= math.sqrt(2 * config.num_hidden_layers)
    return model


def optimizers(model: nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon and AdamW; norms and biases do not decay."""
    named = dict(model.named_parameters())
    matrices = [weight for name, weight in named.items() if "_proj.weight" in name]
    undecayed = [weight for name, weight in named.items() if weight.ndim < 2 or "bias" in name]
    taken = {id(weight) for weight in [*matrices, *undecayed]}
    decayed = [weight for weight in named.values() if id(weight) not in taken]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": undecayed, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=recipe.lr, betas=(0.9, 0.97))
    return [adam, torch.optim.Muon(matrices, lr=recipe.muon_lr, weight_decay=0.01)]


def loss_of(model: GptOssForCausalLM, ids: Tensor, balanced: bool) -> Tensor:
    """In nats a token; `balanced` adds the loss that spreads tokens over the experts."""
    loss: Tensor = model(input_ids=ids, labels=ids, output_router_logits=balanced, use_cache=False).loss
    return loss


@torch.no_grad()
def held_out(model: GptOssForCausalLM, stories: Stories, length: int, limit: int = 64) -> float:
    """Nats a token on rows of held-out stories, in float32."""
    batches = rows(stories, length, 1, 0)
    flat = [next(batches) for _ in range(min(limit, int(stories.lengths.sum()) // length - 3))]
    return float(np.mean([float(loss_of(model, torch.from_numpy(row).to(model.device), False)) for row in flat]))


def train(data: Path, out: Path, recipe: Recipe, steps: int, model: GptOssForCausalLM) -> None:
    """Train, log, evaluate and save."""
    out.mkdir(parents=True, exist_ok=True)
    stories = load(data / "train.npz")
    feeds = {
        length: rows(stories, length, max(1, recipe.tokens_a_step // length), SEED + length)
        for length in (recipe.short, recipe.long)
    }
    both = optimizers(model, recipe)
    peaks = [[group["lr"] for group in optimizer.param_groups] for optimizer in both]
    average = [weight.detach().clone() for weight in model.parameters()]
    begin_s = time.time()
    for step in range(steps):
        for optimizer, group_peaks in zip(both, peaks, strict=True):
            for group, peak in zip(optimizer.param_groups, group_peaks, strict=True):
                group["lr"] = peak * recipe.share(step, steps)
        length = recipe.long if step >= (1 - recipe.long_share) * steps else recipe.short
        batch = torch.from_numpy(next(feeds[length])).to(model.device)
        step_loss = 0.0
        for part in batch.split(max(1, recipe.tokens_at_once // length)):
            with torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=model.device.type == "cuda"):
                loss = loss_of(model, part, True) * len(part) / len(batch)
            loss.backward()
            step_loss += float(loss.detach())
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in both:
            optimizer.step()
        model.zero_grad()
        with torch.no_grad():
            torch._foreach_lerp_(average, list(model.parameters()), 1 - recipe.average)
        if step % 200 == 0:
            print(f"step {step} s {time.time() - begin_s:.0f} loss {step_loss:.4f}", flush=True)
    spent_s = time.time() - begin_s
    with torch.no_grad():
        for weight, mean in zip(model.parameters(), average, strict=True):
            weight.copy_(mean)
    named = model.named_parameters()
    weights = {name: weight.detach().to(torch.bfloat16).contiguous().cpu() for name, weight in named}
    save_file(weights, out / "weights.safetensors")
    losses = {
        f"{kind}_{length}": round(held_out(model, load(data / f"held_{kind}.npz"), length), 4)
        for kind in ("told", "sampled")
        for length in (recipe.short, recipe.long)
    }
    print(f"{steps} steps, {steps * recipe.tokens_a_step} tokens, {spent_s:.1f} s; held-out loss {losses}", flush=True)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=4052)
    parser.add_argument("--tiny", action="store_true", help="a few short steps on a CPU, to check the script")
    args = parser.parse_args()
    recipe, model = Recipe(), new_model(TINY if args.tiny else {})
    if args.tiny:
        recipe = Recipe(tokens_a_step=512, tokens_at_once=256, short=64, long=128, warmup=5)
    train(args.data, args.out, recipe, args.steps, model if args.tiny else model.to("cuda"))


if __name__ == "__main__":
    main()
