"""Counts every causal language model and encoder of transformers at its default config, and holds the prediction
against transformers' own model and cache.

    python -m tools.bench.count_architectures [model_type ...]

Weights: bytes of the parameters and buffers of the model on the meta device. KV: bytes of all tensors in the cache
after passes of several lengths, over and under the window, with two sequences. Accepted: both are equal to
the byte.
"""

import sys
import time
from collections import Counter

import torch
import transformers
from transformers import DynamicCache
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from tokendyno.backend.counter.cache import layer_tensors, observed
from tokendyno.backend.counter.model import Refused, build, count, read_config
from tokendyno.backend.models.facts import ModelFacts
from tokendyno.backend.models.families import ENCODERS, is_encoder
from tokendyno.backend.models.resolve import counted_facts
from tokendyno.backend.plan import DYNAMIC
from tokendyno.backend.predict.kv import kv_bytes
from tokendyno.backend.predict.weights import weight_bytes

BATCH, LENGTHS, LONGEST = 2, (1, 9, 130), 9_000


def main() -> None:
    transformers.logging.set_verbosity_error()
    causal = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    outcomes: Counter[str] = Counter()
    begin_s = time.perf_counter()
    for name in sys.argv[1:] or sorted(causal | ENCODERS):
        outcome = _outcome(name)
        kind = "causal" if name in causal else "encoder only"
        outcomes[f"{kind}: {outcome.partition(' ')[0]}"] += 1
        print(f"{name}: {outcome}", flush=True)
    spent_s, totals = time.perf_counter() - begin_s, dict(sorted(outcomes.items()))
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, {spent_s:.0f} s: {totals}")


def _outcome(name: str) -> str:
    """Accepted, refused with the reason, or wrong with the difference."""
    try:
        facts = counted_facts({"model_type": name}, count({"model_type": name}))
    except Refused as reason:
        return f"refused ({reason})"
    except Exception as error:
        return f"refused (transformers cannot build it: {type(error).__name__}: {' '.join(str(error).split())[:80]})"
    if differences := _differences(name, facts):
        return f"wrong ({'; '.join(differences)})"
    kinds = " + ".join(f"{layers.count} {layers.kind}" for layers in facts.cache_layers)
    return f"accepted ({facts.parameters:,} parameters; {kinds or facts.kind})"


def _differences(name: str, facts: ModelFacts) -> list[str]:
    model = build(read_config({"model_type": name}), is_encoder(name))
    actual = sum(t.nbytes for t in (*model.parameters(), *model.buffers()))
    differences = []
    if (predicted := weight_bytes(facts, "bfloat16") - _float32(facts)) != actual:
        differences.append(f"weights {predicted:,} for {actual:,}")
    if facts.kind == "encoder":
        return differences
    over = [layers.window + 9 for layers in facts.cache_layers if layers.window and layers.window + 9 < LONGEST]
    for length in sorted({*LENGTHS, *over}):
        cache = DynamicCache(config=model.config.get_text_config(decoder=True))
        with observed():
            ids = torch.zeros((BATCH, length), dtype=torch.long, device="meta")
            model(input_ids=ids, past_key_values=cache, use_cache=True)
        actual = sum(t.nbytes for layer in cache.layers for _, t in layer_tensors(layer))
        if (predicted := kv_bytes(facts, DYNAMIC, length, BATCH, 2).total) != actual:
            differences.append(f"KV at {length}: {predicted:,} for {actual:,}")
    return differences


def _float32(facts: ModelFacts) -> int:
    """Bytes by which a checkpoint is loaded larger than the model is built."""
    float32_in = dict(facts.float32_in)
    return 2 * (float32_in["bfloat16"] - float32_in["built"])


if __name__ == "__main__":
    main()
