"""Keeps secrets out of pages, logs, databases and exports."""

import re

_SECRETS = re.compile(r"\bhf_[A-Za-z0-9]{8,}|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)|(?i:bearer\s+)[A-Za-z0-9._\-]{12,}")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


def redact(text: str) -> str:
    """The text without Hugging Face tokens, credentials in URLs, bearer tokens and terminal control codes."""
    return _CONTROL.sub("", _SECRETS.sub("[redacted]", text))
