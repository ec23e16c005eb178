"""Claims as they are declared in `presets/claims/`: families of claims with the tests that they share."""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tokendyno.backend.claims.trials import ClaimTest, Device
from tokendyno.backend.errors import unknown
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
    """All of them, in the order in which they are shown."""

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
        """Those of these names, of claims or families, in that order; without names all. InputError: unknown ones."""
        known = {claim.name: [claim] for claim in self.claims} | {one.name: one.claim for one in self.families}
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
    """Those in `presets/claims/`."""
    return read_claims(FOLDER)


def read_claims(folder: Path) -> Claims:
    """Every file of a folder. InputError names the file and what is wrong in it."""
    families = [read_toml(path, Family) for path in sorted(folder.glob("*.toml"))]
    tests = {test.name: test for family in families for test in family.test}
    return Claims(sorted(families, key=lambda family: (family.order, family.name)), tests)
