"""Several processes on this CPU share checkpoints as several GPUs would, generate, and count what each of them holds.

`python -m tests.backend.predict.processes RANKS CASES.json` prints one JSON list of `Seen` for each rank.
"""

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec

TOKENS = 9  # made after a prompt of PROMPT
PROMPT = 7


class Case(msgspec.Struct, frozen=True):
    """A checkpoint, and how it is split and packed."""

    folder: str
    tensor: int
    expert: int = 1
    quantization: str = "none"
    dtype: str = "float32"
    cache: str = "dynamic"


class Seen(msgspec.Struct, frozen=True):
    """What one rank held once the tokens were made, and its exchanges in a pass by kind; `error` where they could not
    be."""

    weights: int = 0
    kv: int = 0
    ids: tuple[int, ...] = ()
    exchanges: dict[str, int] = {}
    error: str = ""


def count(case: Case) -> Seen:
    """Load, generate, count: parameters and buffers as this rank has them, and its cache."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from tokendyno.backend.models.source import ModelSource
    from tokendyno.backend.plan import LoadPlan
    from tokendyno.backend.worker.load.parallel import distributed_config
    from tokendyno.backend.worker.load.quantization import keywords
    from tokendyno.backend.worker.prove.profile import trace

    dtype = getattr(torch, case.dtype)
    plan = LoadPlan(ModelSource("folder", case.folder), dtype=case.dtype, quantization=case.quantization)
    more = {name: value for name, value in keywords(plan, dtype).items() if name != "device_map"}
    if case.tensor > 1:
        kind = AutoConfig.from_pretrained(case.folder).model_type
        more["distributed_config"] = distributed_config(kind, case.tensor, case.expert)
    with torch.inference_mode(case.quantization.startswith("quanto")):
        model = AutoModelForCausalLM.from_pretrained(case.folder, dtype=dtype, **more).eval()
    weights = held(model)  # before a forward pass: bitsandbytes then lays weights out anew for some CPUs
    with torch.inference_mode():
        ids = torch.arange(3, 3 + PROMPT)[None]
        static = {"cache_implementation": case.cache} if case.cache != "dynamic" else {}
        made = model.generate(
            ids,
            max_new_tokens=TOKENS,
            min_new_tokens=TOKENS,
            do_sample=False,
            return_dict_in_generate=True,
            disable_compile=True,
            **static,
        )
        seen = trace(lambda: model(ids[:, :1]).logits.shape[1], False)
    kv = sum(tensor.nbytes for layer in made.past_key_values.layers for tensor in (layer.keys, layer.values))
    return Seen(weights, kv, tuple(made.sequences[0, PROMPT:].tolist()), dict(seen.collectives))


def held(model: Any) -> int:
    """Bytes of parameters and buffers on this rank: the local tensors stand in the model while it is counted."""
    from torch.distributed.tensor import DTensor

    from tokendyno.backend.optimizations.tensor_bytes import total_bytes, weight_tensors

    stores = [store for module in model.modules() for store in (module._parameters, module._buffers)]
    before = [dict(store) for store in stores]
    for store in stores:
        store |= {name: tensor.to_local() for name, tensor in store.items() if isinstance(tensor, DTensor)}
        store.pop("embed_scale", None)  # Gemma's one number, which predictions leave out
    found = total_bytes(weight_tensors(model))
    for store, whole in zip(stores, before, strict=True):
        store |= whole
    return found


def rank(index: int, ranks: int, port: int, cases: list[Case], folder: str) -> None:
    """One process: all cases in turn; what fails on one rank fails on all of them."""
    import torch
    import torch.distributed as dist

    os.environ |= {"RANK": str(index), "LOCAL_RANK": str(index), "WORLD_SIZE": str(ranks)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=index, world_size=ranks)
    seen = []
    for case in cases:
        try:
            seen.append(count(case))
        except Exception as error:
            seen.append(Seen(error=f"{type(error).__name__}: {error}"[:500]))
    Path(folder, f"{index}.json").write_bytes(msgspec.json.encode(seen))
    dist.destroy_process_group()


def main(ranks: int, path: str) -> None:
    import torch.multiprocessing as processes

    cases = msgspec.json.decode(Path(path).read_bytes(), type=list[Case])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = str(Path(path).parent)
    processes.spawn(rank, args=(ranks, port, cases, folder), nprocs=ranks)
    print(json.dumps([json.loads(Path(folder, f"{index}.json").read_bytes()) for index in range(ranks)]))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
