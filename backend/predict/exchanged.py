"""Bytes that the ranks of a group must exchange in a pass."""

from tokendyno.backend.models import ModelFacts
from tokendyno.backend.models.families import FAMILIES
from tokendyno.backend.predict.parallel import exchanges, plan_of


def exchanged_bytes(facts: ModelFacts, tensor: int, rows: int, size: int) -> int:
    """Bytes that each rank must at least receive from the others in a pass over `rows` tokens, each with its logits;
    `size`: bytes of a number.

    Of n ranks each receives 2 (n - 1) / n of what is added up and (n - 1) / n of what is put together, whatever the
    algorithm (Patarasuk, Yuan: Bandwidth optimal all-reduce algorithms, JPDC 69(2)).
    """
    if tensor == 1:
        return 0
    together = facts.vocab
    if plan_of(facts) == "gathered":
        joined = 2 * facts.intermediate if FAMILIES[facts.architecture].joined else 0
        together += facts.layers * ((facts.heads + 2 * facts.kv_heads) * facts.head_dim + joined)
    added = exchanges(facts, tensor).all_reduce * facts.hidden
    return round((2 * added + together) * rows * size * (tensor - 1) / tensor)
