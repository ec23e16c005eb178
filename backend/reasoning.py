"""What a chat template takes beside the messages, read from its text without rendering it."""

EFFORTS = ("low", "medium", "high")
THINKING = ("on", "off")
REASONING = (*EFFORTS, *THINKING)
"""How long a model may reason, by its chat template: an effort (gpt-oss), or thinking as a switch (Qwen 3)."""

VARIABLES = {"reasoning_effort": EFFORTS, "enable_thinking": THINKING}
"""How long to reason, by the names of published templates: gpt-oss's effort, Qwen 3's switch."""


def reasoning_of(template: str) -> tuple[str, ...]:
    """The reasoning efforts that a template knows; none where it has no variable for that."""
    return tuple(value for name, values in VARIABLES.items() if name in template for value in values)


def refused(effort: str, known: tuple[str, ...]) -> str:
    """Why a template with these efforts cannot be asked for that one; "" if it can, or nothing is asked."""
    if not effort or effort in known:
        return ""
    if not known:
        return (
            "The chat template of this model has no reasoning effort (gpt-oss has low, medium and high, Qwen 3 on and "
            "off). Leave the effort empty."
        )
    return f"The chat template of this model knows no reasoning effort {effort}. Choose {' or '.join(known)}."
