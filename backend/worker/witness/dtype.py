"""Told by the format of every tensor of the weights and of the KV cache, and of products in a few extra tokens."""

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.tensor_bytes import local_part, quantized_parts


def formats_of_products(observation: Observation) -> Counter[str]:
    """Number formats of the traced products with a matrix of the shape of a linear layer's weight, but for those in
    float32 where the model's class keeps such a weight in float32. Products of compiled code, of kernels and of packed
    weights do not show; routers are other modules."""
    formats_by_shape: dict[tuple[int, ...], set[str]] = {}
    in_float32 = kept_in_float32(observation.model)
    for name, module in observation.model.named_modules():
        weight: Any = local_part(module.weight) if isinstance(module, torch.nn.Linear) else None
        if type(weight) in (torch.nn.Parameter, torch.Tensor) and weight.is_floating_point():
            formats = formats_by_shape.setdefault(tuple(weight.shape), set())
            formats |= {"float32"} if f"{name}.weight" in in_float32 else set()
    products: Counter[str] = Counter()
    for (shape, dtype), n in observation.trace().formats.items():
        allowed = formats_by_shape.get(shape[::-1])  # a product takes it transposed
        if allowed is not None and dtype not in allowed:
            products[dtype] += n
    return products


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
    """Counts every tensor of the weights and of the KV cache, and every traced product with a plain weight.

    Exempt are tensors that the model's class has in float32, packed weights and their biases. Products whose factors
    torch may round, and tensors that the checkpoint lacks, count as not reached.
    """
    sizes: Counter[str] = Counter()
    tensors: Counter[str] = Counter()
    exempt = kept_in_float32(observation.model) | set(_biases_of_packed(observation.model))
    for name, whole in observation.model.named_parameters():
        parameter = local_part(whole)  # of several ranks, this one's
        if not parameter.is_floating_point() or hasattr(parameter, "__tensor_flatten__"):
            continue  # quantized: its compute dtype is that of the other weights
        dtype = str(parameter.dtype).removeprefix("torch.")
        sizes[dtype] += parameter.numel() * parameter.element_size()
        if dtype != "float32" or name not in exempt:
            tensors[dtype] += 1
    main, count = sizes.most_common()[0]
    rest = "".join(f", {n:,} bytes in {d}" for d, n in sizes.items() if d != main)
    layers = observation.cache.layers if observation.cache is not None else ()
    plain = [layer for layer in layers if hasattr(layer, "keys") and not quantized_parts(layer)]
    cached_parts = [part for layer in plain for part in (layer.keys, layer.values) if part is not None]
    wide = [part for part in cached_parts if part.is_floating_point() and part.element_size() > 1]  # 8 bits: quantized
    caches = Counter(str(part.dtype).removeprefix("torch.") for part in wide)
    cached = "; KV cache: " + ", ".join(f"{n} tensors in {d}" for d, n in caches.items()) if caches else ""
    tensors += caches
    products = formats_of_products(observation)
    tensors += products
    multiplied = "; products: " + ", ".join(f"{n} in {d}" for d, n in products.items()) if products else ""
    states = (getattr(weight, "quant_state", None) for weight in observation.model.parameters())
    if main == "float32" and any(getattr(state, "packing_format_for_cpu", False) for state in states):
        # so it computes on a CPU with AVX512-BF16, for which it lays 4-bit weights out anew (0.50: Linear4bit)
        multiplied += "; on this CPU bitsandbytes computes products with 4-bit weights in bfloat16"
    other = narrowed(observation.plan.load.device) if main == "float32" and products[main] else ""
    if other:
        multiplied += f", where torch may round float32 factors to {other} (fp32_precision)"
        tensors[main] -= products[main]
        tensors[other] += products[main]
    drawn = observation.counts.load.drawn_tensors
    if drawn:
        multiplied += f"; {drawn:,} tensors are not in the checkpoint, and were drawn at random"
    proof = f"weights: {count:,} bytes in {main}{rest}{cached}{multiplied}"
    return Finding("dtype", main, proof, tensors[main], tensors.total() + drawn)


def _biases_of_packed(model: Any) -> Iterator[str]:
    """Names of the biases of packed weights, such as MXFP4's experts, whose products are summed in float32. The weight
    is a tensor of integers, or the kernels' own object, which is no tensor."""
    for path, module in model.named_modules():
        for name, _ in module.named_parameters(recurse=False):
            weight = name.removesuffix("_bias")
            if weight == name:
                continue
            packed = getattr(module, f"{weight}_blocks", None)
            packed = getattr(module, weight, None) if packed is None else packed
            is_float = getattr(packed, "is_floating_point", None)
            if packed is not None and not (is_float and is_float()):
                yield f"{path}.{name}" if path else name
