"""A test of a claim: one command of this project, on one kind of device."""

import functools
import shlex
from pathlib import Path
from typing import Literal

import msgspec

from tokendyno.backend.arms.bundles import written_arm
from tokendyno.backend.config import ArmRequest, Request, Workload, reading_of, workload_of
from tokendyno.backend.executors.checkpoint import WRITER
from tokendyno.backend.models import resolve
from tokendyno.backend.quality import Quality
from tokendyno.backend.quality.texts import shipped_texts
from tokendyno.backend.traffic.presets import drawn, traffic_preset

Device = Literal["cuda", "cpu"]
Command = Literal["run", "compare", "batch", "quality"]


class ClaimTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is run, as options of `tokendyno run`, `compare`, `batch` or `quality`.

    positions  of `quality`: tokens to predict in each text
    traffic    of `batch`: a file of presets/traffic, of which `requests` are drawn
    loads      how often both arms load the model anew, from files that are written first; 0: once, where it is
    starts     how often it is run, each time by new workers; 0: once, by what there is
    limit_s    after so many seconds it is stopped, and says nothing
    """

    name: str
    device: Device
    command: Command
    model: str
    a: str = ""
    b: str = ""
    gpus: int = 1
    prompt_tokens: int = 128
    max_new_tokens: int = 48
    batch_size: int = 1
    repeats: int = 3
    positions: int = 96
    traffic: str = "small"
    requests: int = 24
    loads: int = 0
    starts: int = 0
    limit_s: float = 300.0

    @property
    def arms(self) -> dict[str, str]:
        """Each arm as it is written."""
        return {"A": self.a} if self.command == "run" else {"A": self.a, "B": self.b}

    @property
    def line(self) -> str:
        """The command as it is typed."""
        said = ["tokendyno", self.command, "--model", "FOLDER" if self.loads else self.model]
        if self.command == "run":
            said += ["--arm", self.a] if self.a else []
        else:
            said += ["--a", self.a, "--b", self.b]
        match self.command:
            case "batch":
                said += ["--traffic", self.traffic, "--requests", str(self.requests)]
            case "quality":
                return shlex.join([*said, "--positions", str(self.positions)])
            case _:
                said += ["--prompt-tokens", str(self.prompt_tokens), "--max-new-tokens", str(self.max_new_tokens)]
                said += ["--batch-size", str(self.batch_size), "--ignore-eos"]
        line = shlex.join([*said, "--repeats", str(self.repeats)])
        anew = f"for n in $(seq {self.loads or self.starts}); do {line}; done"
        if self.loads:
            return f"python -m {WRITER} {self.model} FOLDER; {anew}"
        return anew if self.starts else line

    @property
    def where(self) -> str:
        """What it runs on, in words."""
        return "a CPU" if self.device == "cpu" else "a GPU" if self.gpus == 1 else f"{self.gpus} GPUs"

    def request(self, folder: Path | None = None) -> Request:
        """What that command asks of the bench, of a model in `folder` if given. InputError: unknown arm or traffic."""
        model = str(folder or self.model)
        match self.command:
            case "batch":
                preset = traffic_preset(self.traffic)
                shape = msgspec.structs.replace(preset.draw, requests=self.requests)
                traffic = drawn(shape, 0, preset.concurrent, 0, preset.limits)
                work = workload_of(traffic, 0, self.repeats, True)
                return Request(model, self._arms(work, model), work, traffic)
            case "quality":
                asked = _texts(self.positions)
                work = reading_of(asked)
                return Request(model, self._arms(work, model), work, None, asked)
            case _:
                work = Workload(
                    prompt_tokens=self.prompt_tokens,
                    max_new_tokens=self.max_new_tokens,
                    batch_size=self.batch_size,
                    repeats=self.repeats,
                    ignore_eos=True,
                )
                return Request(model, self._arms(work, model), work)

    def _arms(self, work: Workload, model: str) -> list[ArmRequest]:
        facts = functools.partial(resolve, model)
        return [written_arm(name, text, model, work, facts) for name, text in self.arms.items()]


@functools.cache
def _texts(positions: int) -> Quality:
    return Quality(shipped_texts(), positions=positions)
