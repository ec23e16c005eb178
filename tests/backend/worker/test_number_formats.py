"""The measurement of number formats: it follows what is slow."""

from typing import Any

import pytest
import torch

from tokendyno.backend.worker import number_formats


def test_a_format_that_works_more_is_measured_to_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = torch.nn.functional.linear

    def more(x: Any, weight: Any) -> Any:
        for _ in range(15 if weight.dtype == torch.bfloat16 else 1):
            found = plain(x, weight)
        return found

    monkeypatch.setattr(number_formats, "SIZES", ((1 << 20, 128),))
    threads = torch.get_num_threads()
    usual = {one["rows"]: one["ratio"] for one in number_formats.measured()}
    monkeypatch.setattr(torch.nn.functional, "linear", more)
    slowed = {one["rows"]: one["ratio"] for one in number_formats.measured()}
    assert set(usual) == set(slowed) == {1, 8} and torch.get_num_threads() == threads
    assert all(slowed[rows] > 3 * usual[rows] > 0 for rows in usual)
