"""No secret and no control code comes out; what only looks like one stays."""

import pytest

from tokendyno.backend.redact import redact, without_controls

TOKEN = "hf_" + "aBcD3fGh" * 4


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        f"401 for {TOKEN}: unauthorized",
        f"https://huggingface.co/x?a=%3D{TOKEN}&b",
        f"https://user:{TOKEN}@huggingface.co/x",
        f"Authorization: Bearer {TOKEN}",
        f"{{'headers': {{'authorization': 'Bearer {TOKEN}'}}}}",
        TOKEN[:6] + "\x1b[0m" + TOKEN[6:],
        TOKEN[:10] + "\x00" + TOKEN[10:],
        "api_org_" + TOKEN[3:],
        f"a\n{TOKEN}\nb",
    ],
)
def test_a_canary_never_comes_out(text: str) -> None:
    shown = redact(text)
    assert TOKEN[3:] not in shown
    assert "[redacted]" in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pass@host/x", "https://[redacted]@host/x"),
        ("https://me:p:a%40s@host/x", "https://[redacted]@host/x"),
        ("Bearer eyJhbGciOi.x-y_z12345", "[redacted]"),
    ],
)
def test_credentials_go_and_the_rest_stays(text: str, shown: str) -> None:
    assert redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hf_transfer is not installed",
        "a half_Bearer-sized bear",
        "https://huggingface.co/org/name@main",
        "line one\nline two\ttab",
        "ein Bär, 熊, 🐻",
    ],
)
def test_leaves_alone(text: str) -> None:
    assert redact(text) == text


def test_control_codes_go_and_line_ends_stay() -> None:
    assert without_controls("\x1b[31mred\x1b[0m\n\x1b[2Ja\tb\x07\r\x9b1mc\x7f") == "red\na\tb1mc"
