"""The sentence that a page shows while transformers counts an architecture."""

from backend.engine.bench import Bench
from backend.models import must_count

COUNTING = (
    "transformers counts this architecture, without its weights: this takes seconds, at most two minutes, and is "
    "remembered."
)


def slow_to_resolve(model: object, bench: Bench) -> bool:
    """Whether the facts of a model, named by whatever is in the control, take a while."""
    return isinstance(model, str) and must_count(model, bench.models_dir, local_paths=bench.local_paths)
