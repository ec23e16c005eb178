"""What was checked is what is downloaded, also when a branch of the Hub moves; sizes are known before."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

import tokendyno as td
from tests.support.command_line import POCKET
from tests.support.fake_hub import fake_hub
from tests.support.scripted_executor import SCRIPTED
from tests.support.worker import request
from tokendyno.backend.engine.allowed import SPARE_DISK_BYTES, check_download
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.models import download_bytes, obstacle, pinned, resolve
from tokendyno.backend.models.files import hub
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.paths import ROOT
from tokendyno.backend.units import bytes_text
from tokendyno.ui.components.summary import model_line

CHECKED, MOVED = "a" * 40, "b" * 40


@pytest.fixture(autouse=True)
def hub_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hub._answers.clear()
    yield
    hub._answers.clear()


def commit(folder: Path, layers: int) -> Path:
    """Files of a model; a number in its config tells commits apart."""
    folder.mkdir()
    for name in ("tokenizer.json", "model.safetensors"):
        shutil.copy(POCKET / name, folder)
    config = json.loads((POCKET / "config.json").read_text()) | {"bos_token_id": layers}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


DOWNLOAD = """
import sys
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.load.download import download
print(download(sys.argv[1], sys.argv[2], Channel(lambda event: None)))
"""


def fetched(source: ModelSource, endpoint: str, cache: Path) -> Path:
    """The folder that a worker would load from. The Hub's client reads its settings when a process begins."""
    return Path(ran(DOWNLOAD, source.repo, source.at, HF_ENDPOINT=endpoint, HF_HUB_CACHE=str(cache)).strip())


def ran(code: str, *arguments: str, **env: str) -> str:
    """What Python prints, in a process without the Hub's variables but these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=kept | {"NO_PROXY": "127.0.0.1", "HF_HUB_DISABLE_XET": "1"} | env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("model", ["org/model", "gpt2"], ids=["a Hub id", "of the catalogue"])
def test_a_branch_that_moves_between_check_and_download(
    model: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    repo = "org/model" if model == "org/model" else "openai-community/gpt2"
    commits = {CHECKED: commit(tmp_path / "checked", 1)}
    with fake_hub({repo: tmp_path}, commits=commits) as (endpoint, _):
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        bench = Bench(lambda plan: SCRIPTED)
        work = request({})
        bench.submit(type(work)(model, work.arms, work.workload))
        (job,) = bench._turns
        source = job.arms["A"].plan.load.source
        assert (source.commit, source.revision, job.facts.source) == (CHECKED, "", source)
        commits[MOVED] = commit(tmp_path / "moved", 2)
        assert resolve(model, None).source.commit in (CHECKED, "")
        bench.close()
        folder = fetched(source, endpoint, tmp_path / "cache")
    assert folder.name == CHECKED and json.loads((folder / "config.json").read_text())["bos_token_id"] == 1


def test_the_size_of_a_download_is_known_before_it_begins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A config that promises a tiny model says nothing of the files beside it."""
    folder = commit(tmp_path / "model", 1)
    (folder / "more.safetensors").write_bytes(bytes(3_000_000))
    (folder / "video.mp4").write_bytes(bytes(9_000_000))  # never fetched
    with fake_hub({"org/model": folder}) as (endpoint, _):
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        facts = resolve("org/model")
        assert obstacle(facts, offline=False) == ""
        size = download_bytes(pinned(facts))
        assert size == sum(f.stat().st_size for f in folder.iterdir() if f.suffix != ".mp4")
        assert td.check("org/model").document.download_bytes == size
        assert td.check("org/model", gpu="T4").document.download_bytes == 0  # what that machine holds is not known
        assert f"a run downloads {' '.join(bytes_text(size))}" in model_line(facts, download_bytes=size)
        work = request({"dtype": "bfloat16"})  # auto may settle for float32, which is twice as large
        bench = Bench(lambda plan: SCRIPTED, limits=Limits("public", model_bytes=size - 1))
        with pytest.raises(InputError, match=r"a download of .*, over the limit of .* smaller model"):
            bench.submit(type(work)("org/model", work.arms, work.workload))
        bench.close()
    check_download(size, Limits("public", model_bytes=size))


def test_a_download_that_does_not_fit_on_the_disk_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokendyno.backend.engine.allowed.free_cache_bytes", lambda: SPARE_DISK_BYTES + 1_000)
    check_download(1_000, Limits("local"))
    with pytest.raises(InputError, match="of the disk for downloads are free"):
        check_download(1_001, Limits("local"))


TOKEN = "hf_CanaryCanaryCanaryCanary1234567"
ASK = """
import sys
from tokendyno import app
from tokendyno.backend.hosting.limits import LIMITS
import os
app.withhold(LIMITS[sys.argv[1]], os.environ)
from tokendyno.backend.models import obstacle, resolve
print(obstacle(resolve("org/model"), False))
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.load.download import download
download("org/model", "", Channel(lambda event: None))
"""


@pytest.mark.parametrize(("mode", "sent"), [("local", True), ("public", False)])
@pytest.mark.parametrize("given", ["variable", "login"])
def test_strangers_never_use_the_owners_token(mode: str, sent: bool, given: str, tmp_path: Path) -> None:
    """Neither the one of a variable nor that of `hf auth login`, in the check and in the download."""
    folder, tokens = commit(tmp_path / "model", 1), list[str]()
    home = tmp_path / "home"
    home.mkdir()
    env = {"HF_HOME": str(home)} | ({"HF_TOKEN": TOKEN} if given == "variable" else {})
    if given == "login":
        (home / "token").write_text(TOKEN)
    with fake_hub({"org/model": folder}, tokens=tokens) as (endpoint, asked):
        ran(ASK, mode, HF_ENDPOINT=endpoint, **env)
    assert [path for path in asked if path.endswith("model.safetensors")], "it was downloaded"
    assert any(TOKEN in value for value in tokens) is sent
