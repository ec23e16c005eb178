"""The text of a run as it is shown, from the ids of its tokens."""

import pytest

from tests.support.command_line import POCKET
from tokendyno.backend.worker.measure.stream import HARMONY, ChannelPieces

ANSWER = "<|channel|>analysis<|message|>2 and 2.<|end|><|start|>assistant<|channel|>final<|message|>It is 4.<|return|>"


@pytest.mark.parametrize(
    ("tokens", "given", "shown"),
    [
        ((*HARMONY, "<|end|>", "<|return|>"), ANSWER, "[analysis] 2 and 2.\n\n[final] It is 4."),
        ((*HARMONY, "<|end|>", "<|return|>"), "Once upon a time", "Once upon a time"),
        ((*HARMONY, "<|end|>", "<|return|>"), f"<|channel|>{'far ' * 40}", "far " * 40),  # no message follows
        (("<|end|>",), "<|channel|>analysis", "<|channel|>analysis"),  # of another model
    ],
)
def test_channels_of_gpt_oss_stand_apart(tokens: tuple[str, ...], given: str, shown: str) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(POCKET)
    tokenizer.add_special_tokens({"additional_special_tokens": list(tokens)})
    pieces = ChannelPieces(tokenizer)
    text = "".join(pieces.piece(token) for token in tokenizer(given)["input_ids"])
    assert text.strip() == shown.strip()
