"""Removes secrets and terminal control codes from text before it is shown, logged, stored or exported."""

import re

# a Hub token has upper-case letters or digits, so that names such as hf_quantizer stay
_SECRETS = re.compile(
    r"(?:hf|api_org)_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{8,}|(?<=://)[^/\s@]+(?=@)|(?i:bearer\s+)[A-Za-z0-9._\-]{12,}"
)
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")

MAX_ERROR_TEXT = 200  # characters of an error of a decoder


def without_controls(text: str) -> str:
    """The text without terminal control codes; newlines and tabs stay."""
    return _CONTROL.sub("", text)


def redact(text: str) -> str:
    """The text without Hugging Face tokens, credentials in URLs, bearer tokens and terminal control codes."""
    return _SECRETS.sub("[redacted]", without_controls(text))  # control codes first: one inside a secret would hide it


def error_text(error: Exception) -> str:
    """What an error of a decoder says, as part of a sentence: cut, and without control characters."""
    text = " ".join(without_controls(str(error)).split()).rstrip(".")
    return text if len(text) <= MAX_ERROR_TEXT else f"{text[:MAX_ERROR_TEXT]}..."
