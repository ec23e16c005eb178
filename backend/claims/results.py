"""What was measured of a test, as a file in `presets/claims/results/`: one for each test and machine."""

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from tokendyno.backend.claims.declared import FOLDER, ClaimTest
from tokendyno.backend.claims.samples import Doubt, Samples
from tokendyno.backend.errors import UNDECODABLE, InputError
from tokendyno.backend.files.whole import require_writable, write_whole
from tokendyno.backend.redact import error_text

RESULTS = FOLDER / "results"

_REPEATS = re.compile(r" --repeats \d+|\$\(seq \d+\)")
_BAD_END = "Measure it again (tokendyno claims NAME --run --keep), or remove the file."


class Result(msgspec.Struct, frozen=True):
    """One test on one machine.

    command  as it was typed; a test that has changed since has no result
    doubts   choices of its arms that were not verified
    """

    kind: Literal["claim-test"]
    schema: Literal[2]
    test: str
    command: str
    machine: dict[str, str]
    versions: dict[str, str]
    date: str
    seconds: float
    samples: Samples
    doubts: list[Doubt] = []

    @property
    def on(self) -> str:
        """The machine in a word or two."""
        return machine_name(self.machine)

    @property
    def void(self) -> str:
        """Why it says nothing; "" if it does."""
        doubt = next((doubt for doubt in self.doubts if doubt.void), None)
        return f"{doubt.axis} was not in effect in arm {doubt.arm}: {doubt.reason}" if doubt else ""


def machine_name(machine: Mapping[str, str]) -> str:
    """A machine's GPU, or its CPU with the number of cores."""
    gpus = [text.partition(",")[0] for name, text in machine.items() if re.fullmatch(r"gpu\d+", name)]
    if machine.get("device") == "cuda" and gpus:
        return gpus[0]
    return f"{machine.get('cpu', 'CPU')}, {machine.get('cores', '?')} cores"


def file_of(test: str, machine: Mapping[str, str], folder: Path = RESULTS) -> Path:
    """Where a result is kept."""
    short = (
        re.sub(r"[^a-z0-9]+", "-", machine_name(machine).lower()).strip("-") if machine["device"] == "cuda" else "cpu"
    )
    return folder / f"{test}.{short}.json"


def store(result: Result, folder: Path = RESULTS) -> Path:
    """Write it, in the place of an older one of that machine."""
    path = file_of(result.test, result.machine, folder)
    text = msgspec.json.format(msgspec.json.encode(result), indent=1)
    with _writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(path, text + b"\n")
    return path


def require_storable(folder: Path) -> None:
    """InputError where no result can be kept in a folder, which is made if there is none."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is no folder, so no result can be kept in it. Name another with --results.")
    path = folder / "result.json"
    with _writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        require_writable(path)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"The result {path} cannot be written ({error.strerror}). Name another folder with --results."
        ) from error


def read_results(tests: Mapping[str, ClaimTest], folder: Path = RESULTS) -> dict[str, list[Result]]:
    """Results by test, as far as their command is still that of the test, whatever its repeats: fewer leave a wider
    interval. InputError where a file is damaged."""
    results: dict[str, list[Result]] = {}
    for path in sorted(folder.glob("*.json")):
        result = _read(path)
        test = tests.get(result.test)
        command = result.command.replace("-m backend.", "-m tokendyno.backend.")  # how older results name it
        if (
            test is not None
            and _REPEATS.sub("", test.line) == _REPEATS.sub("", command)
            and test.device == result.machine.get("device")
        ):
            results.setdefault(result.test, []).append(result)
    return results


def _read(path: Path) -> Result:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Result)
    except OSError as error:
        raise InputError(f"The result {path} cannot be read ({error.strerror}). {_BAD_END}") from error
    except UNDECODABLE as error:
        raise InputError(f"{path} is no result of this version: {error_text(error)}. {_BAD_END}") from error
