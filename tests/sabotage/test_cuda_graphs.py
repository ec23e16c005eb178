"""CUDA graphs need a GPU: what breaks them is in tests/gpu/test_sabotage.py."""

REASONS = {
    ("cuda_graphs", "auto"): "It is another name for off or compile, whichever the compile mode implies.",
}
