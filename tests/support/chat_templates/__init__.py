"""Chat templates written to the published formats of some families, for tests: what they render is in those formats."""

from pathlib import Path


def template(name: str) -> str:
    """gemma (refuses a system message), gpt-oss (harmony), llama-3 or qwen-3."""
    return (Path(__file__).parent / f"{name}.jinja").read_text(encoding="utf-8")
