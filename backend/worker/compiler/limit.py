"""Keeps Dynamo's limit of recompilations, which transformers raises for good where a prompt is read in chunks."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def recompile_limit_kept() -> Iterator[None]:
    """Later runs of this process give up after as many recompilations as any other (generation/utils.py,
    `_prefill`)."""
    import torch._dynamo

    kept = torch._dynamo.config.recompile_limit
    try:
        yield
    finally:
        torch._dynamo.config.recompile_limit = kept
