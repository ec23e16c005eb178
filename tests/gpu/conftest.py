"""One bench for the arms of a file, the bundled kernels, and a model of few layers where their number plays no part."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.hardware.kernel_packages import BUNDLED
from tokendyno.backend.models.catalogue import find
from tools.bench.gpu.every import SPARES, start_spares

FEW = 4


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Its idle workers import while an arm runs."""
    made = open_bench()
    made.start(prewarm=SPARES)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def spares(request: pytest.FixtureRequest) -> Iterator[None]:
    """Workers that import during the next test, for the one after it."""
    yield
    if "bench" in request.fixturenames:
        start_spares(request.getfixturevalue("bench"))


@pytest.fixture(scope="module")
def kernels() -> Any:
    """The bundled kernels, as `kernels=local` loads them."""
    from kernels import get_local_kernel

    return get_local_kernel(BUNDLED / "matvec")


@pytest.fixture(params=[False, True])
def early(request: pytest.FixtureRequest, kernels: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that wait for the end of their predecessor, and kernels that are launched before it."""
    monkeypatch.setattr(kernels.parts, "EARLY", request.param)


@pytest.fixture(scope="session")
def few_layers(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Qwen3-0.6B with 4 of its layers: what compiles, or launches kernels one by one, takes a seventh of the time."""
    entry, folder = find("Qwen3-0.6B"), tmp_path_factory.mktemp("few")
    assert entry is not None
    (folder / "config.json").write_text(json.dumps(json.loads(entry.config) | {"num_hidden_layers": FEW}))
    return f"random:{folder}"
