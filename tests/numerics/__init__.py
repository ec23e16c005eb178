"""Our own decode loop, caches, passes and settings against transformers' `generate`, in float32 on tiny models: the
same text, and logits as close as two orders of one sum are. What a kernel computes is in tests/presets/kernels/.
"""
