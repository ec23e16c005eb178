"""What every test of attention needs: our attention registered, one thread, and a Hub that can be offline."""

from collections.abc import Iterator

import pytest
import torch

from tokendyno.backend.worker.patch import attention


@pytest.fixture(autouse=True, scope="module")
def registered() -> Iterator[None]:
    attention.register_grouped_attention()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
