"""The palette's search, in a blank page: the best match comes first, whatever people call it."""

from typing import Any

import msgspec
import pytest

from tests.browser.chart_page import ChartPage
from tests.support.machines import CPU, facts
from tokendyno.backend.arms.palette import palette


@pytest.fixture(scope="module")
def entries() -> Any:
    return msgspec.to_builtins(palette(facts("gpt-oss-20b"), CPU))


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("float32", {"dtype": "float32"}),
        ("bf16", {"dtype": "bfloat16"}),
        ("torch_dtype=float16", {"dtype": "float16"}),
        ("StaticCache", {"cache": "static"}),
        ('cache_implementation="offloaded"', {"cache": "offloaded"}),
        ("int8", {"quantization": "bnb-int8"}),
        ("load_in_4bit=True", {"quantization": "bnb-fp4"}),
        ("eager attention", {"attention": "eager"}),
        ("fa2", {"attention": "flash_attention_2"}),
        ("speculative", {"speculation": "prompt-lookup"}),
        ("reduce-overhead", {"compile": "reduce-overhead"}),
    ],
)
def test_enter_takes_what_is_called_so(js: ChartPage, entries: Any, typed: str, first: dict[str, str]) -> None:
    assert js.call("ranked", entries, typed)[0]["choices"] == first


@pytest.mark.parametrize(
    ("typed", "titles"),
    [
        ("4bit", {"bitsandbytes nf4", "torchao int4", "MXFP4"}),
        ("BitsAndBytesConfig", {"bitsandbytes int8", "bitsandbytes nf4"}),
        ("DistributedConfig", {"tensor parallel, 2 ranks", "expert parallel, 2 ranks"}),
        ("paged", {"continuous"}),
        (".gguf", {"gguf"}),
        ("fast", {"static", "Lowest latency"}),
    ],
)
def test_what_people_type_finds_what_it_should(js: ChartPage, entries: Any, typed: str, titles: set[str]) -> None:
    assert titles <= {entry["title"] for entry in js.call("ranked", entries, typed)}


def test_every_word_has_to_be_found(js: ChartPage, entries: Any) -> None:
    assert js.call("ranked", entries, "static nonsense") == []
