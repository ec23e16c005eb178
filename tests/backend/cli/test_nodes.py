"""`tokendyno run --nnodes` and `tokendyno join`: what is refused before anything is started."""

import pytest

from backend.cli.main import main
from tests.support.command_line import sentence
from tests.support.ports import free_port


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("run --arm parallel=tensor-2 --nnodes 2", "--nnodes needs --rdzv-endpoint"),
        ("run --arm parallel=tensor-2 --rdzv-endpoint 127.0.0.1:1", "--nnodes is 1; with --rdzv-endpoint"),
        ("run --arm parallel=tensor-2 --nnodes 0 --rdzv-endpoint 127.0.0.1:1", "--nnodes is 0"),
        ("run --nnodes 2 --rdzv-endpoint 127.0.0.1:1", "add --arm parallel=tensor-2"),
        ("run --arm parallel=tensor-4 --nnodes 3 --rdzv-endpoint 127.0.0.1:1", "shared out evenly over 3 machines"),
        ("run --arm parallel=tensor-2 --nnodes 2 --rdzv-endpoint here", "is no endpoint"),
        ("run --model nope --arm parallel=tensor-2 --nnodes 2 --rdzv-endpoint 127.0.0.1:1", "nope"),
        ("join --rdzv-endpoint here", "is no endpoint"),
        ("join", "required: --rdzv-endpoint"),
    ],
)
def test_options_that_do_not_go_together(options: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(options.split())
    told = capsys.readouterr()
    assert says in sentence(code, told.out, told.err)


def test_waiting_for_machines_that_do_not_come(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENDYNO_DEADLINE_S", "0.3")
    endpoint = f"127.0.0.1:{free_port()}"
    code = main(f"run --arm parallel=tensor-2 --nnodes 2 --rdzv-endpoint {endpoint} --no-history".split())
    err = capsys.readouterr().err
    assert code == 2 and f"Waiting for 1 more: run `tokendyno join --rdzv-endpoint {endpoint}`" in err
    assert "tokendyno: 0 of 1 further machines joined within 0.3 s." in err
