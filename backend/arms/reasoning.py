"""Which reasoning efforts a chat template knows, by its variables, and why it refuses another."""

from tokendyno.backend.config import EFFORTS, THINKING
from tokendyno.backend.models.files.folder import VARIABLES

EFFORTS_OF = dict(zip(VARIABLES, (EFFORTS, THINKING, THINKING), strict=True))


def efforts_of(variables: tuple[str, ...]) -> tuple[str, ...]:
    """The efforts that a template with these variables knows."""
    return tuple(dict.fromkeys(effort for name in variables for effort in EFFORTS_OF[name]))


def reasoning_keywords(effort: str, variables: tuple[str, ...]) -> dict[str, str | bool]:
    """What a template with these variables gets for an effort that it knows, or for none."""
    value = effort if effort in EFFORTS else effort == "on"
    return {name: value for name in variables if effort in EFFORTS_OF[name]}


def refused(effort: str, variables: tuple[str, ...]) -> str:
    """Why a template with these variables cannot be asked for that effort; "" if it can, or nothing is asked."""
    known = efforts_of(variables)
    if not effort or effort in known:
        return ""
    if not known:
        return (
            "The chat template of this model has no reasoning effort (gpt-oss has low, medium and high, Qwen 3 on and "
            "off). Leave the effort empty."
        )
    return f"The chat template of this model knows no reasoning effort {effort}. Choose {' or '.join(known)}."
