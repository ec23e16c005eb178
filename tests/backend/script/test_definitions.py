"""Definitions of the package as source: complete, in an order that runs, and word for word what the worker runs."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tokendyno.backend import paths
from tokendyno.backend.script import definitions as module
from tokendyno.backend.script.definitions import definitions

PRINTED = [
    ("worker/loop/loop.py", "DecodeLoop"),
    ("worker/loop/cache.py", "StaticSlotCache"),
    ("worker/loop/sampling.py", "Sampling"),
    ("worker/patch/attention.py", "register_grouped_attention"),
    ("worker/patch/projections.py", "fuse"),
    ("worker/patch/apply.py", "set_experts"),
    ("worker/patch/kernels.py", "local_mapping"),
    ("worker/patch/kernels.py", "replace_layers"),
    ("worker/patch/kernels.py", "add_step_end"),
    ("worker/patch/quanto.py", "unpack_with_torch"),
    ("worker/patch/fp8_cache.py", "saturate_fp8_cache"),
    ("worker/load/random_checkpoint.py", "random_mxfp4_experts"),
    ("worker/load/random_model.py", "initialize"),
    ("worker/load/random_model.py", "byte_tokenizer"),
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
    "dataclasses",
    "logging",
    "math",
    "pathlib",
    "typing",
    "zlib",
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of its own in the place of this one."""
    folder = tmp_path / "backend"
    folder.mkdir()
    monkeypatch.setattr(module, "BACKEND", folder)
    module._file.cache_clear()
    yield folder
    module._file.cache_clear()


def ran(*wanted: tuple[str, str]) -> dict[str, Any]:
    found = definitions(wanted)
    names: dict[str, Any] = {}
    exec("\n".join([*sorted(found.imports), *found.sources]), names)
    return names


@pytest.mark.parametrize(("file", "name"), PRINTED)
def test_what_scripts_print_runs_alone_and_needs_torch_and_transformers_only(file: str, name: str) -> None:
    assert callable(ran((file, name))[name])
    lines = definitions([(file, name)]).imports
    assert {line.split()[1].partition(".")[0] for line in lines} <= ALLOWED


def test_all_of_it_together_defines_each_name_once() -> None:
    found = definitions(PRINTED)
    names = [
        getattr(node, "name", None) or ast.unparse(getattr(node, "targets", [node])[0])
        for source in found.sources
        for node in ast.parse(source).body
        if not isinstance(node, ast.Expr)
    ]
    assert len(names) == len(set(names)) > 40


def test_it_is_word_for_word_what_the_worker_runs() -> None:
    """But for comments to linters."""
    files = [path.read_text() for path in paths.BACKEND.rglob("*.py")]
    plain = [re.sub(r"  # (type: ignore|noqa).*", "", text) for text in files]
    for source in definitions(PRINTED).sources:
        assert any(source in text for text in plain), source


def test_what_a_definition_needs_comes_before_it_with_comments_and_docstrings(package: Path) -> None:
    (package / "deep.py").write_text(
        '"""Docs."""\n\nimport math\nfrom typing import Any\n\nSCALE = math.tau\n"""Tau."""\nOTHER = 1\n'
    )
    (package / "top.py").write_text(
        "import json\nimport torch\nfrom tokendyno.backend.deep import SCALE\n\n\n# Why.\n@staticmethod\n"
        "def area(x: 'Shape') -> float:  # type: ignore[misc]\n    return SCALE * x.size  # small\n\n\n"
        "class Shape:\n    size = 1.0\n\n\ndef unused() -> str:\n    return json.dumps(1)\n"
    )
    found = definitions([("top.py", "area")])
    assert found.imports == {"import math"}
    assert found.sources == (
        'SCALE = math.tau\n"""Tau."""',
        "# Why.\n@staticmethod\ndef area(x: 'Shape') -> float:\n    return SCALE * x.size  # small",
        "class Shape:\n    size = 1.0",
    )
    assert definitions([("top.py", "area"), ("deep.py", "SCALE"), ("top.py", "area")]) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("def g() -> None: ...\n", "does not define f"),
        ("def f() -> None:\n    from tokendyno.backend.deep import SCALE\n", "inside a function"),
        ("from tokendyno.backend import deep\ndef f() -> int:\n    return deep.SCALE\n", "uses deep of this package"),
        (
            "from tokendyno.backend.deep import SCALE\nOTHER = 2\ndef f() -> int:\n    return SCALE + OTHER\n",
            "define OTHER",
        ),
    ],
)
def test_what_cannot_be_printed_is_refused(text: str, says: str, package: Path) -> None:
    (package / "deep.py").write_text("OTHER = 1\nSCALE = OTHER\n")
    (package / "top.py").write_text(text)
    with pytest.raises(ValueError, match=says):
        definitions([("top.py", "f")])
