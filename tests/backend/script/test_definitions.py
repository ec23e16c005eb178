"""Definitions of the package as source: complete, in an order that runs, and word for word what the worker runs."""

import ast
import re
from typing import Any

import pytest

from tokendyno.backend import paths
from tokendyno.backend.script.definitions import definitions

PRINTED = [
    ("worker/loop/loop.py", "DecodeLoop"),
    ("worker/loop/cache.py", "StaticSlotCache"),
    ("worker/loop/sampling.py", "Sampling"),
    ("worker/patch/attention.py", "register_grouped_attention"),
    ("worker/patch/projections.py", "fuse"),
    ("worker/patch/experts.py", "set_experts"),
    ("worker/patch/kernels.py", "local_mapping"),
    ("worker/patch/kernels.py", "replace_layers"),
    ("worker/patch/kernels.py", "add_step_end"),
    ("worker/patch/quantized.py", "unpack_with_torch"),
    ("worker/patch/quantized.py", "saturate_fp8_cache"),
    ("worker/load/random_weights.py", "random_mxfp4_experts"),
    ("worker/load/random_weights.py", "initialize"),
    ("worker/load/random_weights.py", "byte_tokenizer"),
    ("worker/load/quantization.py", "cast_experts"),
    ("worker/load/loader.py", "eos_and_pad"),
    ("predict/lengths.py", "rounded"),
]
ALLOWED = {
    "torch",
    "transformers",
    "tokenizers",
    "kernels",
    "collections",
    "copy",
    "dataclasses",
    "functools",
    "gc",
    "logging",
    "math",
    "pathlib",
    "typing",
    "zlib",
}


def ran(*wanted: tuple[str, str]) -> dict[str, Any]:
    printed = definitions(wanted)
    names: dict[str, Any] = {}
    exec("\n".join([*sorted(printed.imports), *printed.sources]), names)
    return names


@pytest.mark.parametrize(("file", "name"), PRINTED)
def test_what_scripts_print_runs_alone_and_needs_torch_and_transformers_only(file: str, name: str) -> None:
    assert callable(ran((file, name))[name])
    lines = definitions([(file, name)]).imports
    assert {line.split()[1].partition(".")[0] for line in lines} <= ALLOWED


def test_all_of_it_together_defines_each_name_once() -> None:
    printed = definitions(PRINTED)
    names = [
        getattr(node, "name", None) or ast.unparse(getattr(node, "targets", [node])[0])
        for source in printed.sources
        for node in ast.parse(source).body
        if not isinstance(node, ast.Expr)
    ]
    assert len(names) == len(set(names)) > 40


def test_it_is_word_for_word_what_the_worker_runs() -> None:
    """But for comments to linters."""
    files = [path.read_text() for path in paths.BACKEND.rglob("*.py")]
    uncommented = [re.sub(r"  # (type: ignore|noqa).*", "", text) for text in files]
    for source in definitions(PRINTED).sources:
        assert any(source in text for text in uncommented), source
