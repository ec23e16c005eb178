"""The number format of weights, activations and KV cache."""

import copy
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from tokendyno.backend.evidence import Finding, Verdict
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.conditions import attention_in_use, dtype_of, kv_cache, slow_bfloat16
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Rule, Subject, note
from tokendyno.backend.optimizations.tensor_bytes import computes_in_bfloat16, keeps_tokens, local_part, quantized_parts
from tokendyno.backend.plan import ONE_THREAD_BELOW_BYTES, Plan
from tokendyno.backend.predict.weights import weight_bytes
from tokendyno.backend.script.parts import Script
from tokendyno.backend.units import three

_TORCH = "https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch-dtype"
_CPU = "measured: docs/figures.md, Memory"


def _builds_kernels_for_each_length(s: Subject) -> bool:
    """oneDNN's bfloat16 matrix products outside of sdpa, whose shape grows with the cache."""
    return s.decoder and not s.cuda and kv_cache(s).grows and attention_in_use(s) == "eager"


def _too_small_for_bfloat16(s: Subject) -> bool:
    """As small as the models that a worker runs on one thread; measured on either side of that."""
    small = weight_bytes(s.facts, "bfloat16", s.choices["quantization"]) < ONE_THREAD_BELOW_BYTES
    return s.decoder and not s.cuda and small


_CLIMBS = note(
    lambda s: _builds_kernels_for_each_length(s) and not _too_small_for_bfloat16(s),
    "On a CPU, memory climbs by about 1.3 MiB a token, up to 0.9 GiB: eager attention over a growing cache multiplies "
    "matrices of a new shape at every token, and bfloat16 kernels are built and cached for each length. float32 and a "
    "static cache do not climb.",
    _CPU,
)
_SLOWER = note(
    lambda s: _too_small_for_bfloat16(s) and not _builds_kernels_for_each_length(s),
    "On a CPU, float32 is faster for a model as small as this: a bfloat16 product of a small matrix and a single row "
    "takes 1.3 to 3 times as long.",
    _CPU,
)
_BOTH = note(
    lambda s: _too_small_for_bfloat16(s) and _builds_kernels_for_each_length(s),
    "On a CPU, float32 is faster for a model this small; in bfloat16, memory climbs with each token.",  # in one line
    _CPU,
)


def _emulated(name: str) -> Rule:
    """bfloat16 before Ampere, which brought its arithmetic; `auto` may come to it too."""
    return note(
        lambda s: s.cuda and dtype_of(name, s) == "bfloat16" and s.machine.capability < (8, 0),
        "This GPU has no bfloat16 arithmetic, which begins with compute capability 8.0 (Ampere): products run without "
        "Tensor Cores, which float16 would use.",
        "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
    )


def formats_of_products(observation: Observation) -> Counter[str]:
    """Number formats of the traced products with a matrix as large as a plain linear layer's, but for those that have
    the format of such a weight which the model's class has in float32. Products of compiled code, of kernels and of
    packed weights do not show; routers, which some models compute in float32, are other modules."""
    from torch import Tensor, nn

    sizes: dict[tuple[int, ...], set[str]] = {}
    kept = kept_in_float32(observation.model)
    for name, module in observation.model.named_modules():
        weight: Any = local_part(module.weight) if isinstance(module, nn.Linear) else None
        if type(weight) in (nn.Parameter, Tensor) and weight.is_floating_point():
            formats = sizes.setdefault(tuple(weight.shape), set())
            formats |= {"float32"} if f"{name}.weight" in kept else set()
    found: Counter[str] = Counter()
    for (shape, dtype), n in observation.trace().formats.items():
        allowed = sizes.get(shape[::-1])  # a product takes it transposed
        if allowed is not None and dtype not in allowed:
            found[dtype] += n
    return found


def narrowed(device: str) -> str:
    """The format to which torch may round the factors of float32 products: "tf32" or "bf16"; "" where it does not."""
    import torch

    backend: Any = torch.backends.cuda if device == "cuda" else torch.backends.mkldnn
    found = str(backend.matmul.fp32_precision)
    return found if found in ("tf32", "bf16") else ""


def autocast(device: str) -> str:
    """The format in which torch.autocast computes products on this device; "" where it is off."""
    import torch

    enabled = torch.is_autocast_enabled(device)
    return str(torch.get_autocast_dtype(device)).removeprefix("torch.") if enabled else ""


def kept_in_float32(model: Any) -> set[str]:
    """Names of parameters that the model's class has or computes with in float32, whatever the dtype: it lists them
    (`_keep_in_fp32_modules`), or builds them so, as Zamba does its `A_log`, and loading leaves them."""
    import torch

    listed = [*(getattr(model, "_keep_in_fp32_modules", None) or ())]
    listed += getattr(model, "_keep_in_fp32_modules_strict", None) or ()
    every = dict(model.named_parameters(remove_duplicate=False))
    kept = {name for name in every if any(one in name for one in listed)}
    wide = {name for name, one in every.items() if one.dtype == torch.float32}
    if wide - kept and wide < every.keys() and hasattr(model, "_from_config"):
        with torch.device("meta"):
            narrow = type(model)._from_config(copy.deepcopy(model.config), dtype=torch.bfloat16)
        kept |= {name for name, one in narrow.named_parameters(remove_duplicate=False) if one.dtype == torch.float32}
    return kept


class Dtype(Optimization):
    """Told by the format of every tensor of the weights and of the KV cache, and of products in a few extra tokens."""

    name = "dtype"
    title = "Dtype"
    summary = "Number format of weights, activations and KV cache."
    default = "auto"
    witness = "weights"
    order = 10
    wish = "numerics"
    aliases = {
        "": ("torch_dtype", "precision"),
        "bfloat16": ("bf16",),
        "float16": ("fp16", "half"),
        "float32": ("fp32", "full precision"),
    }
    renamed = {"torch_dtype": "dtype"}
    costs = {
        "bfloat16": "precision: 8 bits of it",
        "float16": "range: values past 65,504 overflow",
        "float32": "twice the memory of 16 bits",
    }
    choices = (
        Choice(
            "auto",
            "auto",
            "The dtype of the checkpoint; on a CPU float32 where bfloat16 was measured to be slower.",
            (_emulated("auto"),),
        ),
        Choice(
            "bfloat16",
            "bfloat16",
            "2 bytes per number, with the range of float32.",
            (_CLIMBS, _SLOWER, _BOTH, _emulated("bfloat16")),
            loss=31,
            combines=(("cache", "dynamic"), ("cache", "offloaded")),
        ),
        Choice(
            "float16",
            "float16",
            "2 bytes per number, with more precision and less range.",
            (
                note(
                    lambda s: s.facts.dtype == "bfloat16",
                    "This checkpoint is in bfloat16; float16 overflows above 65,504, so its output may degrade.",
                    _TORCH,
                ),
            ),
        ),
        Choice("float32", "float32", "4 bytes per number: twice the memory traffic of bfloat16."),
    )

    def resolve(self, name: str, subject: Subject) -> str:
        return dtype_of(name, subject)

    def verdicts(self, name: str, subject: Subject) -> list[Verdict]:
        """Says so where "auto" is not the checkpoint's dtype, and by which measurement."""
        found = super().verdicts(name, subject)
        slow = slow_bfloat16(subject) if name == "auto" else None
        if slow is not None:
            reason = (
                f"auto -> float32: on this CPU, products of {slow.weight_bytes >> 20} MiB of bfloat16 weights took "
                f"{three(slow.ratio)} times as long as in float32 (batch {slow.rows}). dtype=bfloat16 keeps the "
                "checkpoint's format."
            )
            found.append(Verdict("note", self.name, reason, {}, _CPU, becomes="float32"))
        return found

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == subject.facts.dtype:
            name = "auto"
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, dtype=name))

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.dtype != "auto":
            script.load["dtype"] = f"torch.{plan.load.dtype}"

    def find(self, observation: Observation) -> Finding:
        """Counts every tensor of the weights and of the KV cache, and every traced product with a plain weight; tensors
        that the model's class has in float32, those that a quantization packs, and biases beside those, need not have
        the planned format. Products whose factors torch may round do not count, nor do tensors that the checkpoint
        lacks."""
        sizes: Counter[str] = Counter()
        tensors: Counter[str] = Counter()
        exempt = kept_in_float32(observation.model) | set(_biases_of_packed(observation.model))
        for name, own in observation.model.named_parameters():
            parameter = local_part(own)  # of several ranks, this one's
            if not parameter.is_floating_point() or hasattr(parameter, "__tensor_flatten__"):
                continue  # quantized: its compute dtype is that of the other weights
            dtype = str(parameter.dtype).removeprefix("torch.")
            sizes[dtype] += parameter.numel() * parameter.element_size()
            if dtype != "float32" or name not in exempt:
                tensors[dtype] += 1
        main, count = sizes.most_common()[0]
        rest = "".join(f", {n:,} bytes in {d}" for d, n in sizes.items() if d != main)
        caches = Counter(str(held.dtype).removeprefix("torch.") for held in _plain_cache(observation.cache))
        cached = "; KV cache: " + ", ".join(f"{n} tensors in {d}" for d, n in caches.items()) if caches else ""
        tensors += caches
        products = formats_of_products(observation)
        tensors += products
        multiplied = "; products: " + ", ".join(f"{n} in {d}" for d, n in products.items()) if products else ""
        if main == "float32" and computes_in_bfloat16(observation.model):
            multiplied += "; on this CPU bitsandbytes computes products with 4-bit weights in bfloat16"
        other = narrowed(observation.plan.load.device) if main == "float32" and products[main] else ""
        if other:
            multiplied += f", where torch may round float32 factors to {other} (fp32_precision)"
            tensors[main] -= products[main]
            tensors[other] += products[main]
        if cast := autocast(observation.plan.load.device):
            multiplied += f"; autocast computes products in {cast}"
            tensors[cast] += products[main]
        drawn = observation.counts.load.drawn_tensors
        if drawn:
            multiplied += f"; {drawn:,} tensors are not in the checkpoint, and were drawn at random"
        proof = f"weights: {count:,} bytes in {main}{rest}{cached}{multiplied}"
        return Finding(self.name, main, proof, tensors[main], tensors.total() + drawn)


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


def _plain_cache(cache: Any) -> Iterator[Any]:
    """Keys and values of all layers that are not quantized; numbers of 8 bits are."""
    for layer in cache.layers if cache is not None else []:
        if keeps_tokens(layer) and not quantized_parts(layer):
            parts = (part for part in (layer.keys, layer.values) if part is not None and part.is_floating_point())
            yield from (part for part in parts if part.element_size() > 1)


AXIS = Dtype()
