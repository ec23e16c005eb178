"""An effort that a chat template does not know is refused with those that it knows."""

import pytest

from tokendyno.backend.arms.reasoning import efforts_of, refused


@pytest.mark.parametrize(
    ("effort", "variables", "says"),
    [
        ("", (), ""),
        ("high", ("reasoning_effort",), ""),
        ("on", ("enable_thinking",), ""),
        ("off", ("reasoning_effort", "enable_thinking"), ""),
        ("high", (), "has no reasoning effort"),
        ("high", ("enable_thinking",), "knows no reasoning effort high. Choose on or off."),
        ("on", ("reasoning_effort",), "knows no reasoning effort on. Choose low or medium or high."),
    ],
)
def test_refuses_what_the_template_does_not_know(effort: str, variables: tuple[str, ...], says: str) -> None:
    reason = refused(effort, variables)
    assert says in reason and bool(reason) is bool(says)
    assert effort in ("", *efforts_of(variables)) or reason
