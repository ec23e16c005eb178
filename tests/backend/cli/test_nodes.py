"""`tokendyno run --nnodes`: what is refused before anything is started, and what is to be typed elsewhere."""

import socket
from pathlib import Path

import pytest

from tests.support.command_line import sentence
from tokendyno.backend.cli.main import main
from tokendyno.backend.executors.far_rank import hello_of
from tokendyno.backend.executors.several_machines import Endpoint, Machines


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("run --arm parallel=tensor-2 --nnodes 2", "To share one model, give "),
        ("run --arm parallel=tensor-2 --rdzv-endpoint 127.0.0.1:1", "To share one model, give "),
        (
            "run --arm parallel=tensor-2 --nnodes 0 --rdzv-endpoint 127.0.0.1:1",
            "must be a whole number from 1 to 64",
        ),
        ("run --nnodes 2 --rdzv-endpoint 127.0.0.1:1", "To share one model, give "),
        ("run --arm parallel=tensor-4 --nnodes 3 --rdzv-endpoint 127.0.0.1:1", "To share one model, give "),
        ("run --arm parallel=tensor-2 --nnodes 2 --rdzv-endpoint here", "is no endpoint"),
        ("run --model nope --arm parallel=tensor-2 --nnodes 2 --rdzv-endpoint 127.0.0.1:1", "nope"),
    ],
)
def test_options_that_do_not_go_together(options: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(options.split())
    printed = capsys.readouterr()
    assert says in sentence(code, printed.out, printed.err)


def test_a_port_that_is_in_use_is_said_before_anything_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        endpoint = f"127.0.0.1:{taken.getsockname()[1]}"
        code = main(f"run --arm parallel=tensor-2 --nnodes 2 --rdzv-endpoint {endpoint}".split())
    printed = capsys.readouterr()
    assert f"{endpoint} cannot be listened at (Address already in use)" in sentence(code, printed.out, printed.err)


def test_a_line_for_each_other_machine_says_what_to_type_there() -> None:
    machines = Machines(Endpoint("node1", 29500), 3, 2, hello_of(None))
    first, second = machines.torchrun_lines("my model", Path("/srv/models"))
    options = "--nnodes 3 --node-rank 1 --nproc-per-node 2 --rdzv-endpoint node1:29500"
    assert first == f"torchrun {options} -m tokendyno.backend.executors.far_rank 'my model' --models-dir /srv/models"
    assert second == first.replace("--node-rank 1", "--node-rank 2")
