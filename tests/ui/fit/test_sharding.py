"""What the Fit page's table of a split model is made from: the controls, read as untrusted."""

import pytest

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.ui.fit.page import split


@pytest.mark.parametrize(
    ("kind", "model", "gpus", "says"),
    [
        ("tensor", "Llama-3-8B", 1, "Set GPUs to 2 or more"),
        ("tensor", "Llama-3-8B", 3, "Take one of 1, 2, 4, 8."),
        ("expert", "Llama-3-8B", 2, "it has no experts"),
        ("expert", "gpt-oss-20b", 5, "Take one of 1, 2, 4, 8."),
        ("tensor", None, 2, "The model is missing"),
        ("tensor", "Llama-3-8B", None, "GPUs is empty"),
        ("tensor", "Llama-3-8B", 2.5, "Enter a whole number"),
    ],
)
def test_what_cannot_be_split_is_one_sentence(
    warm_bench: Bench, kind: str, model: object, gpus: object, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        split(warm_bench, kind, model, gpus)
