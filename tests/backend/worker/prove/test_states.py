"""States of a replay against those of the model: rounding passes, another text, mask or weight does not."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel

from backend.worker.prove.states import held_against_pass


@pytest.fixture(scope="module")
def bert() -> Any:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=100, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, initializer_range=0.3,
    )  # fmt: skip
    return BertModel(config).eval()


def counted(bert: Any, change: Callable[[Any, Any], Any], dtype: torch.dtype = torch.float32) -> tuple[float, float]:
    """(checked, strange) where `change` makes states of ids (2, 12) and their mask, the last 4 of the second hidden."""
    torch.manual_seed(1)
    ids = torch.randint(1, 100, (2, 12))
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    model = bert.to(dtype)
    with torch.inference_mode():
        states = change(lambda i, m: model(input_ids=i, attention_mask=m)[0], (ids, mask))
        found = held_against_pass(model, ids, mask, states)
    bert.float()
    assert found.checked_positions is not None and found.strange_positions is not None
    return found.checked_positions, found.strange_positions


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_states_of_the_same_pass_are_the_same_and_padding_does_not_count(bert: Any, dtype: torch.dtype) -> None:
    assert counted(bert, lambda run, given: run(*given), dtype) == (20, 0)

    def noise_in_padding(run: Any, given: Any) -> Any:
        states = run(*given).clone()
        states[1, 8:] = 100.0
        return states

    assert counted(bert, noise_in_padding, dtype) == (20, 0)


def test_rounding_of_16_bits_is_no_other_text(bert: Any) -> None:
    rounded = counted(bert, lambda run, given: (run(*given) * (1 + 2**-7)).to(torch.bfloat16), torch.bfloat16)
    assert rounded == (20, 0)


@pytest.mark.parametrize(
    ("change", "least"),
    [
        (lambda run, given: run(given[0].flip(1), given[1]), 20),
        (lambda run, given: run(given[0].roll(1, 0), given[1]), 20),
        (lambda run, given: run(given[0], torch.ones_like(given[1])), 8),  # the row with padding
        (lambda run, given: torch.zeros_like(run(*given)), 20),
        (lambda run, given: run(*given)[:, :-1], 20),
        (lambda run, given: run(*given) * float("nan"), 20),
    ],
    ids=["backwards", "each other's text", "without a mask", "nothing", "another shape", "not a number"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_another_text_or_mask_is_strange_at_its_positions(
    bert: Any, change: Any, least: int, dtype: torch.dtype
) -> None:
    checked, strange = counted(bert, change, dtype)
    assert checked == 20 and least <= strange <= 20
