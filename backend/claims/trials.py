"""A test of a claim: one command of this project, on one kind of device."""

import shlex
from typing import Literal

import msgspec

from tokendyno.backend.executors.checkpoint import WRITER

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

    def arguments(self, model: str) -> list[str]:
        """The command with its options, of a model by this name."""
        said = [self.command, "--model", model]
        if self.command == "run":
            said += ["--arm", self.a] if self.a else []
        else:
            said += ["--a", self.a, "--b", self.b]
        match self.command:
            case "batch":
                said += ["--traffic", self.traffic, "--requests", str(self.requests)]
            case "quality":
                return [*said, "--positions", str(self.positions)]
            case _:
                said += ["--prompt-tokens", str(self.prompt_tokens), "--max-new-tokens", str(self.max_new_tokens)]
                said += ["--batch-size", str(self.batch_size), "--ignore-eos"]
        return [*said, "--repeats", str(self.repeats)]

    @property
    def line(self) -> str:
        """The command as it is typed."""
        line = shlex.join(["tokendyno", *self.arguments("FOLDER" if self.loads else self.model)])
        anew = f"for n in $(seq {self.loads or self.starts}); do {line}; done"
        if self.loads:
            return f"python -m {WRITER} {self.model} FOLDER; {anew}"
        return anew if self.starts else line

    @property
    def where(self) -> str:
        """What it runs on, in words."""
        return "a CPU" if self.device == "cpu" else "a GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
