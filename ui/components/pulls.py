"""What a panel's JavaScript is told where its pull cannot be served."""

import msgspec


def refusal(sentence: str) -> str:
    """The answer, as JSON."""
    return msgspec.json.encode({"error": sentence}).decode()


class PullRefused(Exception):
    """A pull that cannot be served, and why: one sentence."""

    @property
    def answer(self) -> str:
        return refusal(str(self))
