"""Bytes that the ranks of a group must exchange in a pass."""

from backend.models import ModelFacts
from backend.models.families import FAMILIES
from backend.predict.parallel import exchanges, mixtures, plan_of


def exchanged_bytes(facts: ModelFacts, tensor: int, expert: int, rows: int, size: int) -> int:
    """Bytes that each rank must at least receive from the others in a pass over `rows` tokens, each with its logits;
    `size`: bytes of a number.

    Of n ranks each receives 2 (n - 1) / n of what is added up and (n - 1) / n of what is put together, whatever the
    algorithm (Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, JPDC 69(2)). Tokens that are sent to experts
    count as there and back once: where they go is not known.
    """
    if tensor == 1:
        return 0
    counted = exchanges(facts, tensor, expert)
    together = facts.vocab
    if plan_of(facts) == "gathered":
        joined = 2 * facts.intermediate if FAMILIES[facts.architecture].joined else 0
        together += facts.layers * ((facts.heads + 2 * facts.kv_heads) * facts.head_dim + joined)
    if counted.all_to_all:
        together += mixtures(facts) * 3 * facts.hidden  # there, back, and the result on every rank
    return round((2 * counted.all_reduce * facts.hidden + together) * rows * size * (tensor - 1) / tensor)
