"""What would do: the smallest GPU of the catalogue, and a number of GPUs, each against the table for just that."""

import functools
from typing import Any

import pytest

from tests.support.machines import CPU
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.device import device_of
from tokendyno.backend.fit.table import Fit, fit
from tokendyno.backend.fit.view import view
from tokendyno.backend.hardware.gpu_specs import gpus

SIZES = {spec.name: spec.memory_bytes for spec in gpus()}


@functools.cache
def table(model: str, gpu: str, **more: Any) -> Fit:
    return fit(model, device_of(CPU, gpu), **more)


def fits(found: Fit) -> list[tuple[Any, bool]]:
    """The choices of each row, but for how GPUs share the model, and whether it fits."""
    return [({a: c for a, c in row.choices.items() if a != "parallel"}, row.fits) for row in found.rows]


@pytest.mark.parametrize(
    ("model", "context"), [pytest.param("Llama-3-8B", 8_192, marks=pytest.mark.slow), ("gpt-oss-20b", 8_192)]
)
def test_the_smallest_gpu_holds_the_row_and_no_smaller_one_does(model: str, context: int) -> None:
    found = table(model, "H200-SXM", context=context)
    one_of_each = {(spec.memory_bytes, spec.capability): spec.name for spec in gpus()}
    tables = {name: table(model, name, context=context) for name in one_of_each.values()}
    named = set()
    for row in found.rows:
        fitting = [name for name, there in tables.items() if (row.choices, True) in fits(there)]
        smallest = min(fitting, key=lambda name: SIZES[name], default="")
        assert SIZES.get(row.smallest_gpu) == SIZES.get(smallest), row.choices
        named.add(row.smallest_gpu)
    assert len(named) > 1


@pytest.mark.parametrize(("model", "gpu", "batch"), [("Llama-3-8B", "T4", 1), ("Llama-3-8B", "T4", 4)])
def test_enough_gpus_hold_a_row_that_fewer_do_not(model: str, gpu: str, batch: int) -> None:
    found = table(model, gpu, batch=batch)
    tables = {count: table(model, gpu, batch=batch, gpus=count) for count in (2, 4, 8)}
    tried = 0
    for row in found.rows:
        fitting = [count for count, wider in tables.items() if (row.choices, True) in fits(wider)]
        assert row.enough_gpus == (0 if row.fits else min(fitting, default=0)), row.choices
        tried += bool(row.enough_gpus)
    assert tried


def test_a_model_that_cannot_be_split_is_offered_no_more_gpus() -> None:
    gpt2 = table("gpt2", "T4", batch=1_024)
    with pytest.raises(InputError):
        table("gpt2", "T4", gpus=2)
    assert not any(row.enough_gpus for row in gpt2.rows) and not all(row.fits for row in gpt2.rows)


def test_each_row_is_told_apart_without_the_headings_of_the_table() -> None:
    titles = [row.title for row in view(table("Llama-3-8B", "T4")).rows]
    assert len(set(titles)) == len(titles)
    assert {"no quantization", "bitsandbytes int8", "no quantization; KV cache quantized, fp8"} <= set(titles)
