"""Packages that do not work together give one line; good ones give none."""

import importlib.metadata

import pytest

from tokendyno.backend.hardware import compatibility


def with_versions(monkeypatch: pytest.MonkeyPatch, **installed: str | None) -> list[str]:
    versions = {"transformers": "5.22.2", "kernels": "0.17.2", "torch": "2.13.0", **installed}

    def read_version(name: str) -> str:
        if (version := versions[name]) is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", read_version)
    return compatibility.startup_messages()


def test_what_is_installed_here_works_together() -> None:
    assert compatibility.startup_messages() == []


@pytest.mark.parametrize(
    ("transformers", "kernels", "broken"),
    [
        ("5.20.0", "0.17.2", False),
        ("5.22.2", "0.17.2", False),
        ("5.22.2", None, False),
        ("5.22.2", "0.18.2", True),
        ("5.23.0", "0.17.2", True),
        ("5.23.0", "0.18.2", False),
    ],
)
def test_a_broken_pair_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, transformers: str, kernels: str | None, broken: bool
) -> None:
    messages = with_versions(monkeypatch, transformers=transformers, kernels=kernels)
    broken_pairs = [message for message in messages if "do not work together" in message]
    assert len(broken_pairs) == broken
    for message in broken_pairs:
        assert f"transformers {transformers} and kernels {kernels}" in message
        assert "pip install" in message
        assert "\n" not in message


@pytest.mark.parametrize("version", ["5.19.0", "5.23.0", "6.0.0"])
def test_an_untested_version_is_reported(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    messages = with_versions(monkeypatch, transformers=version, kernels=None)
    assert any(f"transformers {version} is untested" in message for message in messages)


def test_a_missing_torch_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    (message,) = with_versions(monkeypatch, torch=None)
    assert message.startswith("torch is not installed")
    assert "pip install" in message
