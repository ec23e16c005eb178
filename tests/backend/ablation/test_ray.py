"""Trials as tasks of a Ray cluster with one node, and what is said where there is none."""

import builtins
import importlib.util
import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import cli
from tokendyno.backend.ablation.places import ray_places
from tokendyno.backend.errors import InputError

not_installed = importlib.util.find_spec("ray") is None


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def without_ray(name: str, *more: Any, **keywords: Any) -> Any:
        if name == "ray":
            raise ImportError(name)
        return imported(name, *more, **keywords)

    monkeypatch.delitem(sys.modules, "ray", raising=False)
    monkeypatch.setattr(builtins, "__import__", without_ray)
    with pytest.raises(InputError, match=r"pip install 'tokendyno\[ray\]'"):
        ray_places("127.0.0.1:6379", "cpu")


def test_an_address_without_a_cluster_is_said_at_once() -> None:
    pytest.importorskip("ray", reason="the extra ray is not installed")
    begin_s = time.monotonic()
    with pytest.raises(InputError, match=r"No Ray cluster answers at 127\.0\.0\.1:1 .*ray start --head"):
        ray_places("127.0.0.1:1", "cpu")
    assert time.monotonic() - begin_s < 60, "Ray itself would try for minutes"


of_ray = pytest.mark.skipif(not_installed and not os.environ.get("CI"), reason="the extra ray is not installed")


@pytest.fixture
def address() -> Iterator[str]:
    """Of a cluster with two nodes of one core each."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    cluster.shutdown()


def ran(command: str, address: str, folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """The document of a command, the lines of its journal, and the history's rows."""
    history, journal = str(folder / "history.sqlite"), folder / "journal.jsonl"
    more = [address, "--history", history, "--journal", str(journal), "--json", "-"]
    found = cli(*shlex.split(command), "--ray", *more)
    assert found.returncode == 0, found.stderr
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    listed = json.loads(cli("history", "--history", history, "--json", "-").stdout)
    return json.loads(found.stdout), lines, listed["runs"]


@pytest.mark.full
@of_ray
def test_a_sweep_keeps_every_trial_with_its_node(address: str, tmp_path: Path) -> None:
    found, lines, rows = ran("sweep --over batch_size=1,2 --rounds 1 --max-new-tokens 4", address, tmp_path)
    assert found["complete"]
    assert [line["node"] != "" for line in lines if line["line"] == "trial"] == [True, True]
    assert [row["trials"] for row in rows] == [2]


@pytest.mark.full
@of_ray
def test_advice_is_found_in_two_places_and_measured_again_in_its_budget(address: str, tmp_path: Path) -> None:
    command = "advise --quality any --budget 3m --max-new-tokens 8 --prompt-tokens 16"
    found, lines, rows = ran(command, address, tmp_path)
    assert found["complete"] and 0 < found["spent_s"] <= found["budget_s"] and len(found["measured"]) > 3
    assert all(line["node"] for line in lines if line["line"] == "trial") and lines[-1]["line"] == "confirmed"
    assert found["winners"][0]["run"] == lines[-1]["run"] and len(rows) == 1
