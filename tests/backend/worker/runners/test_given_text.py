"""A text that is given to the model token by token, in each way of generating, beside one bare forward pass."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from tests.support.local_worker import LocalWorker
from tests.support.worker import plan_of
from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import Score, Scored
from tokendyno.backend.worker.measure.scores import Scores
from tokendyno.backend.worker.runners.course import course_for

CONTEXT, POSITIONS = 9, 36
TEXT = (
    "Once upon a time there was a little fox. The fox lived in a forest with his mother. One day the fox found a red "
    "ball. He played with the red ball all day long, and then he went home to his mother."
)
WAYS = [
    {},
    {"cache": "static"},
    {"cache": "static", "loop": "own"},
    {"speculation": "prompt-lookup"},
    {"shapes": "buckets"},
]


class Reader:
    """One loaded model in float32."""

    def __init__(self) -> None:
        self.worker = LocalWorker(plan_of(dtype="float32").load)

    def read(
        self, ways: dict[str, str], text: str = TEXT, keep: str = "", against: str = "", context: int = CONTEXT
    ) -> Scored:
        plan = plan_of(**{"dtype": "float32"} | ways)
        runner = course_for(self.worker.model, plan, self.worker.channel, last=self.worker.runner)
        self.worker.runner = runner
        self.worker.events.clear()
        runner.score(Score(plan, text, context, POSITIONS, keep, against))
        scored = self.worker.events[-1]
        assert isinstance(scored, Scored)
        return scored


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader()


@pytest.fixture(scope="module")
def bare(reader: Reader) -> tuple[list[int], list[float], list[int]]:
    """Tokens, negative log probabilities and likeliest tokens of one pass over the whole text, without a cache."""
    model = reader.worker.model
    ids = model.tokenizer(TEXT)["input_ids"][: CONTEXT + POSITIONS]
    with torch.inference_mode():
        likely = model.model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float().log_softmax(-1)
    expected = ids[CONTEXT:]
    rows = likely[CONTEXT - 1 : -1]
    nll = [-float(row[token]) for row, token in zip(rows, expected, strict=True)]
    return expected, nll, rows.argmax(-1).tolist()


@pytest.mark.parametrize("ways", WAYS, ids=lambda ways: ",".join(ways.values()) or "baseline")
def test_every_way_predicts_what_one_forward_pass_predicts(
    ways: dict[str, str], reader: Reader, bare: tuple[list[int], list[float], list[int]]
) -> None:
    scored = reader.read(ways)
    assert scored.ids == bare[0] and len(scored.ids) == POSITIONS
    assert scored.nll_nats == pytest.approx(bare[1], abs=2e-4)
    assert scored.top == bare[2]
    assert scored.kl_nats == []


@contextmanager
def broken_layer(reader: Reader) -> Iterator[None]:
    """The output of one attention is doubled."""
    layer = reader.worker.model.model.model.layers[3].self_attn.o_proj
    hook = layer.register_forward_hook(lambda module, args, out: 2 * out)
    try:
        yield
    finally:
        hook.remove()


@pytest.mark.parametrize("ways", [{}, {"cache": "static", "loop": "own"}], ids=["generate", "custom loop"])
def test_what_one_layer_does_otherwise_is_seen_at_every_position(
    ways: dict[str, str], reader: Reader, tmp_path: Path
) -> None:
    written = str(tmp_path / "a")
    first = reader.read({}, keep=written)
    same = reader.read(ways, against=written)
    assert max(same.kl_nats) < 1e-6
    with broken_layer(reader):
        other = reader.read(ways, against=written)
    assert min(other.kl_nats) > 1e-6 and sum(other.kl_nats) / POSITIONS > 0.01
    shape = (POSITIONS, reader.worker.model.model.get_output_embeddings().weight.shape[0])
    a = torch.from_file(written, size=shape[0] * shape[1]).view(shape)
    assert a.exp().sum(-1).tolist() == pytest.approx([1.0] * POSITIONS, abs=1e-4)
    assert [-float(a[i, token]) for i, token in enumerate(first.ids)] == pytest.approx(first.nll_nats)


def test_a_text_that_is_too_short_or_a_context_too_long_is_a_sentence(reader: Reader) -> None:
    with pytest.raises(InputError, match="at least 16 are needed"):
        reader.read({}, text="A little fox.")
    with pytest.raises(InputError, match="less context"):
        reader.read({}, context=4_000)


def test_a_disk_without_room_is_a_sentence(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="do not fit in"):
        reader.read({}, keep=str(tmp_path / "missing" / "a"))


def test_distributions_are_kept_where_the_system_reserves_no_disk_space(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    scores = Scores([1, 0], 2, keep=str(tmp_path / "a"))
    for position in range(2):
        scores.take(position, torch.tensor([0.0, 1.0]))
    kept = torch.from_file(str(tmp_path / "a"), size=4).view(2, 2)
    assert torch.equal(kept, torch.tensor([[0.0, 1.0]] * 2).log_softmax(-1))
