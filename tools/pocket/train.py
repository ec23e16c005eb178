# mypy: disable-error-code="misc, untyped-decorator"
"""Train the model from scratch in one short run.

    python -m tools.pocket.train --data FOLDER --out FOLDER --seconds 600

The number of steps follows from the measured speed, unless --steps fixes it. The learning rate warms up, stays, and
falls to zero over the last two fifths; the last part of the run reads rows of 4,096 tokens, so that every position
the configuration promises was trained. The weights kept are an average over the last steps.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from tools.pocket.dataset import Stories, load, rows
from tools.pocket.model import FlexAttend, Pocket, Shape, attend_plainly
from tools.pocket.optimizer import build

SEED = 20_262
BALANCE = 0.01


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the outcome, apart from the data."""

    lr: float = 3e-3
    muon_lr: float = 0.02
    tokens_a_step: int = 131_072
    short: int = 1024
    long: int = 4096
    long_share: float = 0.15
    warmup: int = 60
    fall: float = 0.4
    average: float = 0.98


def rate(step: int, steps: int, recipe: Recipe) -> float:
    """Give the share of the peak learning rate."""
    left = (steps - step) / max(1.0, recipe.fall * steps)
    return min(1.0, (step + 1) / recipe.warmup, max(0.0, left))


def feed(stories: Stories, length: int, tokens: int, seed: int, device: str) -> Iterator[Tensor]:
    """Give device batches made by a background thread."""
    from queue import Queue
    from threading import Thread

    queue: Queue[Tensor] = Queue(maxsize=8)

    def work() -> None:
        for batch in rows(stories, length, max(1, tokens // length), seed):
            tensor = torch.from_numpy(batch)
            queue.put(tensor.pin_memory() if device == "cuda" else tensor)

    Thread(target=work, daemon=True).start()
    while True:
        yield queue.get().to(device, non_blocking=True)


@torch.no_grad()
def held_out(model: Pocket, stories: Stories, length: int, device: str, limit: int = 64) -> float:
    """Give the loss in nats a token on rows of held-out stories, in float32 and with plain attention."""
    batches = rows(stories, length, 1, 0)
    flat = np.concatenate([next(batches) for _ in range(min(limit, int(stories.lengths.sum()) // length - 3))])
    losses = [model.loss(torch.from_numpy(part).to(device))[0] for part in np.array_split(flat, max(1, len(flat) // 8))]
    return float(torch.stack(losses).mean())


class Trainer:
    """A model in training."""

    def __init__(self, shape: Shape, recipe: Recipe, device: str) -> None:
        torch.manual_seed(SEED)
        torch.set_float32_matmul_precision("high")
        self.recipe, self.device = recipe, device
        self.model = Pocket(shape, FlexAttend() if device == "cuda" else attend_plainly).to(device)
        self.optimizers = build(self.model, recipe.lr, recipe.muon_lr)
        self.peaks = [[group["lr"] for group in optimizer.param_groups] for optimizer in self.optimizers]
        self.average = [param.detach().clone() for param in self.model.parameters()]
        self.loss = torch.compile(self.model.loss, dynamic=False) if device == "cuda" else self.model.loss
        for length in (recipe.short, recipe.long) if device == "cuda" else ():
            for window in (shape.sliding_window, None):
                self.model.model.layers[0].self_attn.attend.mask(length, window)

    def step(self, ids: Tensor, share: float) -> Tensor:
        """Take one step; `share` scales the learning rates."""
        for optimizer, peaks in zip(self.optimizers, self.peaks, strict=True):
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["lr"] = peak * share
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            loss, balance = self.loss(ids)
        (loss + BALANCE * balance).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        self.model.zero_grad(set_to_none=False)
        with torch.no_grad():
            torch._foreach_lerp_(self.average, list(self.model.parameters()), 1 - self.recipe.average)
        return loss.detach()

    def use_average(self) -> None:
        """Put the averaged weights into the model."""
        with torch.no_grad():
            for param, mean in zip(self.model.parameters(), self.average, strict=True):
                param.copy_(mean)

    def save(self, path: Path) -> None:
        """Write the weights as they ship, in bfloat16."""
        named = self.model.named_parameters()
        save_file({name: param.detach().to(torch.bfloat16).contiguous().cpu() for name, param in named}, path)


def run(data: Path, out: Path, recipe: Recipe, seconds: float, steps: int, device: str, shape: Shape) -> None:
    """Train, log, evaluate and save."""
    out.mkdir(parents=True, exist_ok=True)
    trainer, stories = Trainer(shape, recipe, device), load(data / "train.npz")
    held = {kind: load(data / f"held_{kind}.npz") for kind in ("told", "sampled")}
    feeds = {
        length: feed(stories, length, recipe.tokens_a_step, SEED + length, device)
        for length in (recipe.short, recipe.long)
    }
    print("parameters", sum(param.numel() for param in trainer.model.parameters()), flush=True)
    began = time.time()
    if device == "cuda":  # compile both lengths before the clock starts; a rate of zero changes no weight
        for length in (recipe.long, recipe.short):
            trainer.step(next(feeds[length]), 0.0)
        torch.cuda.synchronize()
        trainer.optimizers = build(trainer.model, recipe.lr, recipe.muon_lr)
        print(f"compiled in {time.time() - began:.0f} s", flush=True)
    start, step = time.time(), 0
    planned = steps or 10_000_000
    while step < planned:
        long = bool(planned < 10_000_000 and step >= (1 - recipe.long_share) * planned)
        loss = trainer.step(next(feeds[recipe.long if long else recipe.short]), rate(step, planned, recipe))
        step += 1
        if step == 100 and not steps:
            loss.item()
            each = (time.time() - start) / step
            planned = max(200, int(seconds / (each * (1 + 0.25 * recipe.long_share))))
            print(f"steps planned {planned}, {each * 1000:.1f} ms a step", flush=True)
        if step % 200 == 0:
            print(f"step {step} s {time.time() - start:.0f} loss {float(loss):.4f}", flush=True)
    spent = time.time() - start
    trainer.use_average()
    trainer.save(out / "weights.safetensors")
    judge = Pocket(shape).to(device)
    judge.load_state_dict(trainer.model.state_dict())
    losses = {
        f"{kind}_{length}": held_out(judge, found, length, device)
        for kind, found in held.items()
        for length in (recipe.short, recipe.long)
    }
    print(f"{step} steps, {step * recipe.tokens_a_step} tokens, {spent:.1f} s; held-out loss {losses}", flush=True)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--lr", type=float, default=Recipe.lr)
    parser.add_argument("--muon-lr", type=float, default=Recipe.muon_lr, help="0 for AdamW alone")
    parser.add_argument("--tiny", action="store_true", help="a few short steps on a CPU, to check the script")
    args = parser.parse_args()
    recipe, shape, device = Recipe(lr=args.lr, muon_lr=args.muon_lr), Shape(), "cuda"
    if args.tiny:
        recipe = Recipe(args.lr, args.muon_lr, tokens_a_step=512, short=64, long=128, warmup=5)
        shape = Shape(hidden_size=64, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2)
        device = "cpu"
    run(args.data, args.out, recipe, args.seconds, args.steps, device, shape)


if __name__ == "__main__":
    main()
