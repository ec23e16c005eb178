"""The gate before Gradio: which requests reach the page at all, and as whose. Plain ASGI: streams pass."""
