"""Told by the format of every tensor of the weights and of the KV cache."""

import copy
from collections import Counter
from typing import Any

import torch

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.tensor_bytes import local_part, quantized_parts


def narrowed(device: str) -> str:
    """The format to which torch may round the factors of float32 products: "tf32" or "bf16"; "" where it does not."""
    backend: Any = torch.backends.cuda if device == "cuda" else torch.backends.mkldnn
    precision = str(backend.matmul.fp32_precision)
    return precision if precision in ("tf32", "bf16") else ""


def kept_in_float32(model: Any) -> set[str]:
    """Names of parameters that the model's class keeps in float32, whatever the dtype: it lists them
    (`_keep_in_fp32_modules`), or builds them so (Zamba's `A_log`), and loading leaves them."""
    listed = [*(getattr(model, "_keep_in_fp32_modules", None) or ())]
    listed += getattr(model, "_keep_in_fp32_modules_strict", None) or ()
    parameters = dict(model.named_parameters(remove_duplicate=False))
    names = {name for name in parameters if any(part in name for part in listed)}
    in_float32 = {name for name, parameter in parameters.items() if parameter.dtype == torch.float32}
    if in_float32 - names and in_float32 < parameters.keys() and hasattr(model, "_from_config"):
        with torch.device("meta"):
            reference = type(model)._from_config(copy.deepcopy(model.config), dtype=torch.bfloat16)
        names |= {
            name
            for name, parameter in reference.named_parameters(remove_duplicate=False)
            if parameter.dtype == torch.float32
        }
    return names


def find(observation: Observation) -> Finding:
    """Counts every tensor of the weights and of the KV cache; none where torch may round the factors of products.

    Exempt are tensors that the model's class has in float32, packed weights, and the biases of MXFP4's experts, whose
    products are summed in float32. Tensors that the checkpoint lacks count as not reached.
    """
    sizes: Counter[str] = Counter()
    tensors: Counter[str] = Counter()
    exempt = kept_in_float32(observation.model)
    for name, whole in observation.model.named_parameters():
        parameter = local_part(whole)  # of several ranks, this one's
        if not parameter.is_floating_point() or hasattr(parameter, "__tensor_flatten__"):
            continue  # quantized: its compute dtype is that of the other weights
        dtype = _named(parameter)
        sizes[dtype] += parameter.nbytes
        if dtype != "float32" or not (name in exempt or _adds_to_packed(observation.model, name)):
            tensors[dtype] += 1
    main, count = sizes.most_common()[0]
    rest = "".join(f", {n:,} bytes in {d}" for d, n in sizes.items() if d != main)
    proof = f"weights: {count:,} bytes in {main}{rest}"
    layers = observation.cache.layers if observation.cache is not None else ()
    plain = [layer for layer in layers if hasattr(layer, "keys") and not quantized_parts(layer)]
    cached_parts = [part for layer in plain for part in (layer.keys, layer.values) if part is not None]
    wide = [part for part in cached_parts if part.is_floating_point() and part.element_size() > 1]  # 8 bits: quantized
    caches = Counter(map(_named, wide))
    if caches:
        proof += "; KV cache: " + ", ".join(f"{n} tensors in {d}" for d, n in caches.items())
    tensors += caches
    reached, drawn = tensors[main], observation.counts.load.drawn_tensors
    if main == "float32" and (other := narrowed(observation.plan.load.device)):
        proof += f"; products, where torch may round float32 factors to {other} (fp32_precision)"
        reached = 0
    if drawn:
        proof += f"; {drawn:,} tensors are not in the checkpoint, and were drawn at random"
    return Finding("dtype", main, proof, reached, tensors.total() + drawn)


def _named(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _adds_to_packed(model: Any, name: str) -> bool:
    """Whether it is the bias of a packed weight, which is a tensor of integers, or the kernels' own object."""
    path, _, own_name = name.rpartition(".")
    module, weight = model.get_submodule(path), own_name.removesuffix("_bias")
    packed = getattr(module, f"{weight}_blocks", getattr(module, weight, None))
    is_float = getattr(packed, "is_floating_point", lambda: False)
    return weight != own_name and packed is not None and not is_float()
