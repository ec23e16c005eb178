"""What every test of attention needs: our attention registered, and a Hub that can be offline."""

import pytest

from tokendyno.backend.worker.patch import attention


@pytest.fixture(autouse=True, scope="module")
def registered() -> None:
    attention.register_grouped_attention()


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
