"""The sentence that a page shows while transformers counts an architecture."""

from backend.engine.allowed import check_model
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.models import must_count

COUNTING = (
    "transformers counts this architecture, without its weights: this takes seconds, at most two minutes, and is "
    "remembered."
)


def slow_to_resolve(model: object, bench: Bench) -> bool:
    """Whether the facts of a model, named by whatever is in the control, take a while."""
    if not isinstance(model, str):
        return False
    try:
        check_model(model, bench.limits)
    except InputError:  # `check` says so
        return False
    return must_count(model, bench.models_dir, local_paths=bench.local_paths)
