"""Local copies of Hub kernels, made from wheels of PyPI, for machines without the Hub.

    pip download --no-deps vllm==0.33.0 liger-kernel==0.8.5
    python -m tools.local_kernels FOLDER vllm-0.33.0-*.whl liger_kernel-0.8.5-*.whl
    export LOCAL_KERNELS=...                                   # the line that it prints

vLLM's wheel gives `kernels-community/gpt-oss-triton-kernels` (MXFP4 for gpt-oss),
`kernels-community/vllm-flash-attn3` (FlashAttention 3, for Hopper) and `kernels-community/flash-attn2` (FlashAttention
2, built for capability 8.0: the driver compiles it for a later card when it first runs), both with the stable ABI of
torch (2.10 or later, CUDA 13). Liger's gives `kernels-community/liger-kernels` (RMSNorm). The code of the kernels is
theirs; what is written beside it here is the interface that transformers calls.
"""

import argparse
import json
import zipfile
from pathlib import Path

MXFP4, FLASH2, FLASH3, LIGER = "gpt-oss-triton-kernels", "flash-attn2", "vllm-flash-attn3", "liger-kernels"
_TRITON = "vllm/third_party/triton_kernels/"
_LIBRARY_2, _LIBRARY_3 = "_vllm_fa2_C.abi3.so", "_vllm_fa3_C.abi3.so"

MXFP4_CODE = '''"""The Triton kernels for MXFP4 that vLLM carries."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # they import each other by this name

from triton_kernels import matmul_ogs, numerics_details, routing, swiglu, tensor, tensor_details  # noqa: E402
from triton_kernels.numerics_details import mxfp  # noqa: E402, F401
from triton_kernels.tensor_details import layout  # noqa: E402, F401

__all__ = ["matmul_ogs", "numerics_details", "routing", "swiglu", "tensor", "tensor_details"]
'''

FLASH_CODE = '''"""FlashAttention as vLLM builds it, in the interface that transformers calls.

That build takes sequences of different lengths laid end to end, and does not write the KV cache.
"""

from pathlib import Path

import torch

torch.ops.load_library(str(Path(__file__).parent / "LIBRARY"))


def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, softmax_scale=None, causal=False,
    window_size=(-1, -1), softcap=0.0, SINKS=None,
):
    """q: (tokens, heads, D), k and v: (tokens, KV heads, D); cu_seqlens: first token of each sequence, and the end."""
    return _forward(q, k, v, cu_seqlens_q, max_seqlen_q, max_seqlen_k, softmax_scale, causal, window_size, softcap,
                    SINKS, cu_seqlens_k=cu_seqlens_k)


def flash_attn_func(q, k, v, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0, SINKS=None):
    """q: (B, S, heads, D), k and v: (B, T, KV heads, D)."""
    B, S, T = q.shape[0], q.shape[1], k.shape[1]
    starts = torch.arange(B + 1, dtype=torch.int32, device=q.device)
    out = _forward(*(one.reshape(-1, *one.shape[2:]) for one in (q, k, v)), starts * S, S, T, softmax_scale, causal,
                   window_size, softcap, SINKS, cu_seqlens_k=starts * T)
    return out.view(q.shape)


def flash_attn_with_kvcache(
    q, k_cache, v_cache, k, v, cache_seqlens, block_table, softmax_scale=None, causal=False, window_size=(-1, -1),
    softcap=0.0, SINKS=None,
):
    """One new token for each of B sequences: writes its key and value into its page, then attends to all of them.

    q: (B, 1, heads, D), k and v: (B, 1, KV heads, D), caches: (pages, tokens of a page, KV heads, D), cache_seqlens:
    (B,) tokens that are cached already, below 0 in rows that only pad the batch; block_table: (B, pages of a sequence).
    Rows of padding write what the first row writes.
    """
    size = k_cache.shape[1]
    real = cache_seqlens >= 0
    at = cache_seqlens.clamp(min=0).long()
    page = block_table.gather(1, (at // size)[:, None]).squeeze(1).long()
    page, slot = torch.where(real, page, page[0]), torch.where(real, at % size, at[0] % size)
    for cache, new in ((k_cache, k), (v_cache, v)):
        new = new[:, 0].to(cache.dtype)
        cache.index_put_((page, slot), torch.where(real[:, None, None], new, new[:1]))
    starts = torch.arange(q.shape[0] + 1, dtype=torch.int32, device=q.device)
    most = block_table.shape[1] * size
    out = _forward(q[:, 0], k_cache, v_cache, starts, 1, most, softmax_scale, causal, window_size, softcap, SINKS,
                   lengths=(cache_seqlens + 1).clamp(min=0).int(), block_table=block_table)
    return out[:, None]


def _forward(q, k, v, starts, max_q, max_k, scale, causal, window, softcap, SINKS, cu_seqlens_k=None, lengths=None,
             block_table=None):
    q, k, v = (one if one.stride(-1) == 1 else one.contiguous() for one in (q, k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
CALL'''

FLASH2_CALL = """    return torch.ops._vllm_fa2_C.varlen_fwd(
        q, k, v, None, starts, starts if cu_seqlens_k is None else cu_seqlens_k, lengths, None, block_table, None,
        int(max_q), int(max_k), 0.0, scale, False, causal, window[0], window[1], softcap or 0.0, False, 0, None,
    )[0]
"""

FLASH3_CALL = """    return torch.ops._vllm_fa3_C.fwd(
        q, k, v, None, None, None, None,  # new keys and values, values beside the queries, output
        starts, cu_seqlens_k, None, None, lengths, int(max_q), int(max_k), block_table,
        None, None, None, None, None, None, None, None,  # rows of the batch, padding, rotary, scales of FP8
        scale, causal, window[0], window[1], softcap or 0.0, True, None, 0, None, 0, s_aux, 1, 0, None,
    )[0]
"""


def _flash_code(library: str, call: str, sinks: bool) -> str:
    """The interface of one build. Without `sinks` its functions do not take them, by which transformers knows."""
    code = FLASH_CODE.replace("LIBRARY", library).replace("CALL", call)
    if sinks:
        return code.replace("SINKS", "s_aux")
    return code.replace(", SINKS=None", "").replace(", SINKS", "").replace(" SINKS,", "")


LIGER_CODE = '''"""Liger's RMSNorm, as a layer that transformers puts in place of a model's own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from . import layers  # noqa: E402

__all__ = ["layers"]
'''

LIGER_LAYERS = '''import torch
from liger_kernel.ops.rms_norm import LigerRMSNormFunction


class LigerRMSNorm(torch.nn.Module):
    """RMSNorm of (..., H), normalized in float32, whose weight is applied in the dtype of the input."""

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return LigerRMSNormFunction.apply(hidden_states, self.weight, self.variance_epsilon, 0.0, "llama", False, None)
'''


def _metadata(name: str) -> str:
    code = name.replace("-", "_")
    return json.dumps(
        {
            "id": f"{code}_cuda_local",
            "name": name,
            "version": 1,
            "license": "Apache-2.0",
            "python-depends": [],
            "backend": {"type": "cuda"},
        }
    )


def make(wheel: Path, folder: Path) -> dict[str, Path]:
    """Write the kernels that a wheel has below `folder`. Returns their folders by repository; ValueError for a wheel of
    another project."""
    if wheel.name.startswith("vllm-"):
        codes = {
            MXFP4: {"__init__.py": MXFP4_CODE},
            FLASH2: {"__init__.py": _flash_code(_LIBRARY_2, FLASH2_CALL, sinks=False)},
            FLASH3: {"__init__.py": _flash_code(_LIBRARY_3, FLASH3_CALL, sinks=True)},
        }
        packages = {_TRITON: (MXFP4, "triton_kernels/")}
        for name, library in ((FLASH2, _LIBRARY_2), (FLASH3, _LIBRARY_3)):
            packages[f"vllm/vllm_flash_attn/{library}"] = (name, library)
    elif wheel.name.startswith("liger_kernel-"):
        codes = {LIGER: {"__init__.py": LIGER_CODE, "layers.py": LIGER_LAYERS}}
        packages = {"liger_kernel/": (LIGER, "liger_kernel/")}
    else:
        raise ValueError(f"{wheel.name} is neither a wheel of vLLM nor of Liger.")
    inside = {name: folder / name / "build" / "torch-cuda" for name in codes}
    with zipfile.ZipFile(wheel) as packed:
        for name, files in codes.items():
            inside[name].mkdir(parents=True, exist_ok=True)
            for file, text in (files | {"metadata.json": _metadata(name)}).items():
                (inside[name] / file).write_text(text)
        for entry in packed.namelist():
            for prefix, (name, place) in packages.items():
                if entry.startswith(prefix) and entry.endswith((".py", ".so")):
                    target = inside[name] / place / entry.removeprefix(prefix)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(packed.read(entry))
    return {f"kernels-community/{name}": (folder / name).resolve() for name in inside}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="where the kernels go")
    parser.add_argument("wheels", type=Path, nargs="+", help="the wheel of vLLM, of Liger, or both")
    options = parser.parse_args()
    made: dict[str, Path] = {}
    for wheel in options.wheels:
        made |= make(wheel, options.folder)
    print("export LOCAL_KERNELS=" + ":".join(f"{name}={place}" for name, place in made.items()))


if __name__ == "__main__":
    main()
