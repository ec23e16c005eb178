"""Batching: what breaks a batch, and what breaks a step over pages."""

REASONS = {
    ("batching", "static"): "Batches need many requests: tests/backend/worker/runners/test_batches.py breaks them.",
    ("batching", "continuous"): "Pages need many requests: tests/backend/worker/runners/test_batches.py breaks them.",
}
