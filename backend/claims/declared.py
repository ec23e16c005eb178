"""Claims as they are declared in `presets/claims/`: families of claims with the tests that they share."""

import functools
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tokendyno.backend.errors import unknown
from tokendyno.backend.executors.checkpoint import WRITER
from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.paths import PRESETS

FOLDER = PRESETS / "claims"

DOCUMENTS = {
    "guide": "Optimizing Transformer models for faster inference using OpenAI's gpt-oss strategies",
    "compile-guide": "How to Optimize Transformer Inference with torch.compile",
    "blog": "Tricks from OpenAI gpt-oss you can use with transformers (Hugging Face blog)",
    "overview": "Inference optimization overview (documentation of transformers)",
}
"""What claims are taken from, by the name that a claim's `document` gives."""

Device = Literal["cuda", "cpu"]
Command = Literal["run", "compare", "batch", "quality"]

Metric = Literal[
    "token_s",
    "ttft_s",
    "cold_s",
    "load_s",
    "weight_bytes",
    "kv_bytes",
    "peak_bytes",
    "temporary_bytes",
    "process_bytes",
    "useful_tokens_s",
    "top1_agreement",
    "kl_nats",
    "perplexity_ratio",
]
"""What a test measures of an arm; see `samples.py`."""

Form = Literal["value", "times", "faster", "less", "share", "difference", "payback"]
"""How a figure follows from arms A and B; see `formula.py`."""

Unit = Literal["x", "%", "GB", "s", "tokens", "nats"]


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
        """The command with its options, for a model of this name."""
        arguments = [self.command, "--model", model]
        if self.command == "run":
            arguments += ["--arm", self.a] if self.a else []
        else:
            arguments += ["--a", self.a, "--b", self.b]
        match self.command:
            case "batch":
                arguments += ["--traffic", self.traffic, "--requests", str(self.requests)]
            case "quality":
                return [*arguments, "--positions", str(self.positions)]
            case _:
                arguments += ["--prompt-tokens", str(self.prompt_tokens), "--max-new-tokens", str(self.max_new_tokens)]
                arguments += ["--batch-size", str(self.batch_size), "--ignore-eos"]
        return [*arguments, "--repeats", str(self.repeats)]

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


class Figure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One figure of a claim, and the range that was claimed for it.

    over       another test: the figure is that of `test` divided by that of `over`
    low, high  the range that was claimed (1 is 100%; bytes, seconds); None: open to that side
    better     the side on which a figure exceeds the claim
    """

    test: str
    title: str
    metric: Metric
    form: Form
    unit: Unit
    arm: Literal["A", "B"] = "A"
    over: str = ""
    low: float | None = None
    high: float | None = None
    better: Literal["above", "below", ""] = ""

    @property
    def decides(self) -> bool:
        """Whether a range was claimed. Other figures are shown beside."""
        return self.low is not None or self.high is not None


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a figure of a document draws, from a file in `presets/claims/curves/`.

    command  what made the file: `tokendyno sweep`, or a tool that draws something else
    figure   of a sweep, what is drawn: a field of `PointResult`; date: when it was measured
    """

    name: str
    title: str
    command: str
    figure: Literal["tokens_per_s", "latency_mean_s", "ttft_s", "peak_memory_bytes", "kv_bytes", ""] = ""
    date: str = ""


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a document says, in our words, and how it is tested.

    about      whether it is about GPUs: what a CPU measures then decides nothing
    differs    where our test is not the claim's own setting: other weights, other kernels, another GPU
    untested   why nothing is measured here; "" where something is
    """

    name: str
    title: str
    document: str
    place: str
    said: str
    about: Literal["gpu", "any"]
    figures: list[Figure] = []
    curves: list[Curve] = []
    differs: str = ""
    untested: str = ""


class Family(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file. `drift`: by what share of itself a figure may leave its stored interval when it is measured again;
    `differs`: as a claim's, of all of them."""

    name: str
    title: str
    test: list[ClaimTest]
    claim: list[Claim]
    order: int = 100
    drift: float = 0.2
    differs: str = ""


class Claims(msgspec.Struct, frozen=True):
    """All claims, in the order in which they are shown."""

    families: list[Family]
    tests: dict[str, ClaimTest]

    @property
    def claims(self) -> list[Claim]:
        """Every claim."""
        return [claim for family in self.families for claim in family.claim]

    def family_of(self, claim: Claim) -> Family:
        """The family of a claim."""
        return next(family for family in self.families if claim in family.claim)

    def named(self, names: Sequence[str]) -> list[Claim]:
        """The claims of these names, or of families of these names, in that order; all claims without names. InputError
        for an unknown name."""
        known = {claim.name: [claim] for claim in self.claims} | {family.name: family.claim for family in self.families}
        for name in names:
            if name not in known:
                raise unknown("claim", name, known, "tokendyno claims")
        wanted = {claim.name: claim for name in names for claim in known[name]}
        return list(wanted.values()) if names else self.claims

    def tests_of(self, claims: Iterable[Claim], device: Device) -> list[ClaimTest]:
        """The tests that these claims need on one kind of device, each once."""
        names = [name for claim in claims for figure in claim.figures for name in (figure.test, figure.over) if name]
        return [self.tests[name] for name in dict.fromkeys(names) if self.tests[name].device == device]


@functools.cache
def shipped_claims() -> Claims:
    """The claims in `presets/claims/`."""
    return read_claims(FOLDER)


def read_claims(folder: Path) -> Claims:
    """Every file of a folder. InputError names the file and what is wrong in it."""
    families = [read_toml(path, Family) for path in sorted(folder.glob("*.toml"))]
    tests = {test.name: test for family in families for test in family.test}
    return Claims(sorted(families, key=lambda family: (family.order, family.name)), tests)
