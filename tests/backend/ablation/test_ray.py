"""Trials as tasks of a Ray cluster with one node, and what is said where there is none."""

import builtins
import importlib.util
import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import cli
from tokendyno.backend.ablation.ray_places import ray_places
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


@pytest.mark.full
@pytest.mark.skipif(not_installed and not os.environ.get("CI"), reason="the extra ray is not installed")
def test_a_sweep_on_one_node_keeps_every_trial_with_its_node(tmp_path: Path) -> None:
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        found = cli(
            *shlex.split("sweep --over batch_size=1,2 --rounds 1 --max-new-tokens 4 --ray"),
            cluster.address,
            "--history",
            str(tmp_path / "history.sqlite"),
            "--journal",
            str(tmp_path / "s.jsonl"),
            "--json",
            "-",
        )
    finally:
        cluster.shutdown()
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["complete"]
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [line["node"] != "" for line in lines if line["line"] == "trial"] == [True, True]
    listed = json.loads(cli("history", "--history", str(tmp_path / "history.sqlite"), "--json", "-").stdout)
    assert [row["trials"] for row in listed["runs"]] == [2]
