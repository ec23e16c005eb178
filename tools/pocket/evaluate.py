# mypy: disable-error-code="misc, untyped-decorator"
"""Measure the shipped model on a CPU: perplexity, variety, loops, what quantization costs, load time and speed.

    python -m tools.pocket.evaluate --model presets/models/pocket --mxfp4 presets/models/pocket-mxfp4 \\
        --held tools/pocket/held_out.jsonl --out tools/pocket/evaluation.json
"""

import argparse
import json
import logging
import math
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tools.pocket.metrics import distinct, loops, repetition

PROMPTS = (
    "Once upon a time, there was a little fox named Pip.",
    "One day, a sad robot went to the beach.",
    "Lily was a kind girl who lived near the forest.",
    "The dragon was",
    "Once upon a time, in a small village, there lived an old baker.",
    "It was a cold winter morning. Ben looked out of the window.",
    "Mia had a red kite.",
    "Tom the cat could not sleep.",
    "There once was a shy penguin named Gus who wanted to learn how to swim.",
    "Rosie and Max were best friends.",
    "On a farm lived a lazy pig.",
    "Grandmother gave Anna a small seed.",
    '"Where is my hat?" asked the bear.',
    "A storm was coming, and the little boat was far from home.",
    "Every night, Leo was afraid of the dark.",
    "Nora found an old map in the attic.",
    "The princess wanted to bake a cake for her friend.",
    "Sam the squirrel told a lie.",
    "Far away, by the sea, lived a curious turtle named Molly.",
    "Today was the birthday of Oscar the owl.",
)
NEW_TOKENS, LONG_TOKENS = 300, 1500
WINDOW = 1024
Held = dict[str, list[str]]


def load(folder: Path, **options: Any) -> Any:
    """Load a model for inference."""
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16, **options).eval()


@torch.inference_mode()
def perplexity(model: Any, ids: torch.Tensor) -> float:
    """Perplexity a token of held-out stories, packed and read in rows of 1,024 tokens."""
    total, count = 0.0, 0
    for at in range(0, len(ids) - 1, WINDOW):
        row = ids[at : at + WINDOW + 1]
        if len(row) < 2:
            break
        logits = model(row[None, :-1]).logits[0].float()
        total += float(torch.nn.functional.cross_entropy(logits, row[1:], reduction="sum"))
        count += len(row) - 1
    return math.exp(total / count)


def packed(tokenizer: Any, texts: Sequence[str]) -> torch.Tensor:
    """Join stories as in training: a blank line and the end token after each."""
    ids = [token for text in texts for token in [*tokenizer(text + "\n\n")["input_ids"], tokenizer.eos_token_id]]
    return torch.tensor(ids)


@torch.inference_mode()
def generate(model: Any, tokenizer: Any, prompts: Sequence[str], sampled: bool, tokens: int) -> list[list[int]]:
    """Give exactly `tokens` new ids a prompt; the end token is no stop, the model goes on with another story."""
    from transformers import GenerationConfig

    how = {"do_sample": True, "temperature": 0.8, "top_p": 0.95, "top_k": 0} if sampled else {"do_sample": False}
    model.generation_config.eos_token_id = None
    config = GenerationConfig(max_new_tokens=tokens, pad_token_id=tokenizer.pad_token_id, eos_token_id=None, **how)
    encoded = tokenizer(list(prompts), return_tensors="pt", padding=True, padding_side="left")
    ids = model.generate(encoded["input_ids"], attention_mask=encoded["attention_mask"], generation_config=config)
    found: list[list[int]] = ids[:, encoded["input_ids"].shape[1] :].tolist()
    return found


def drop_sinks(model: Any) -> None:
    """Take the attention sinks out: exp(-inf) is nothing."""
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.sinks.fill_(torch.finfo(torch.bfloat16).min / 2)


def variants(folder: Path, mxfp4: Path | None) -> dict[str, Any]:
    """Give a loader for each way to run the weights."""
    from transformers import BitsAndBytesConfig

    nf4 = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
    ways: dict[str, Any] = {
        "bf16": lambda: load(folder),
        "int8": lambda: load(folder, quantization_config=BitsAndBytesConfig(load_in_8bit=True)),
        "nf4": lambda: load(folder, quantization_config=nf4),
    }
    if mxfp4:
        ways["mxfp4"] = lambda: load(mxfp4)
    return ways | {"sinks dropped": ways["bf16"]}


def speed(model: Any, tokenizer: Any) -> float:
    """Greedy tokens a second over 200 tokens, one text at a time, after a warm-up; the better of two."""
    generate(model, tokenizer, PROMPTS[:1], False, 16)
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        generate(model, tokenizer, PROMPTS[:1], False, 200)
        seconds.append(time.perf_counter() - start)
    return 200 / min(seconds)


def perplexities(folder: Path, mxfp4: Path | None, held: Held, tokenizer: Any) -> dict[str, dict[str, float]]:
    """Perplexity for every way to run the weights, and with the sinks dropped."""
    ids = {kind: packed(tokenizer, texts) for kind, texts in held.items()}
    found: dict[str, dict[str, float]] = {}
    for name, make in variants(folder, mxfp4).items():
        model = make()
        if name == "sinks dropped":
            drop_sinks(model)
        found[name] = {kind: round(perplexity(model, rows), 3) for kind, rows in ids.items()}
        print(name, found[name], flush=True)
    return found


def told(model: Any, tokenizer: Any, sampled: bool) -> dict[str, Any]:
    """Continue all prompts, and measure variety and loops."""
    torch.manual_seed(0)
    texts = generate(model, tokenizer, PROMPTS, sampled, NEW_TOKENS)
    return {
        "distinct_1": round(distinct(texts, 1), 3),
        "distinct_2": round(distinct(texts, 2), 3),
        "distinct_4": round(distinct(texts, 4), 3),
        "repetition_rate": round(sum(map(repetition, texts)) / len(texts), 3),
        "without_loops": sum(not loops(text) for text in texts),
        "texts": [tokenizer.decode(text) for text in texts],
    }


def evaluate(folder: Path, held: Held) -> dict[str, Any]:
    """Measure everything but perplexity."""
    from transformers import AutoTokenizer, GptOssForCausalLM

    assert GptOssForCausalLM  # imported here, so that the load time is that of the files
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    start = time.perf_counter()
    model = load(folder)
    result: dict[str, Any] = {"load_s": round(time.perf_counter() - start, 2)}
    result["tokens_per_s"] = round(speed(model, tokenizer), 1)
    result["held_out_tokens"] = {kind: len(packed(tokenizer, texts)) for kind, texts in held.items()}
    result["greedy"], result["sampled"] = told(model, tokenizer, False), told(model, tokenizer, True)
    long = generate(model, tokenizer, PROMPTS[:1], True, LONG_TOKENS)[0]
    result["long_sampled"] = {"text": tokenizer.decode(long), "repetition_rate": round(repetition(long), 3)}
    return result


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--mxfp4", type=Path)
    parser.add_argument("--held", type=Path, required=True, help="JSON lines of [kind, story]")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(2)
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", message="MatMul8bitLt")
    held: Held = {}
    for line in args.held.read_text(encoding="utf-8").splitlines():
        kind, text = json.loads(line)
        held.setdefault(kind, []).append(text)
    from transformers import AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(args.model)
    result = evaluate(args.model, held) | {"perplexity": perplexities(args.model, args.mxfp4, held, tokenizer)}
    args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
