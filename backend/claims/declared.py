"""Claims as they are declared in `presets/claims/`: families of claims with the tests that they share."""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tokendyno.backend.claims.trials import NAME, ClaimTest, Device
from tokendyno.backend.errors import unknown
from tokendyno.backend.files.toml import invalid, read_toml, refuse_duplicates
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
    families: list[Family] = []
    paths = {path: read_toml(path, Family) for path in sorted(folder.glob("*.toml"))}
    tests: dict[str, ClaimTest] = {}
    names: set[str] = set()
    for path, family in paths.items():
        own = [family.name, *(claim.name for claim in family.claim)]
        refuse_duplicates(path, [*own, *names])
        refuse_duplicates(path, [*(test.name for test in family.test), *tests])
        names.update(own)
        tests |= {test.name: test for test in family.test}
        families.append(family)
    for path, family in paths.items():
        _check(path, family, tests)
    return Claims(sorted(families, key=lambda family: (family.order, family.name)), tests)


def _check(path: Path, family: Family, tests: dict[str, ClaimTest]) -> None:
    for name in (family.name, *(test.name for test in family.test), *(claim.name for claim in family.claim)):
        if not NAME.fullmatch(name):
            raise invalid(path, f"{name!r} is no name: use small letters, digits and hyphens.")
    if not 0 < family.drift <= 1:
        raise invalid(path, f"drift is {family.drift}; it must be above 0 and at most 1.")
    for claim in family.claim:
        _check_claim(path, claim, tests)


def _check_claim(path: Path, claim: Claim, tests: dict[str, ClaimTest]) -> None:
    where = f"the claim {claim.name!r}"
    if claim.document not in DOCUMENTS:
        raise invalid(path, f"{where} names no known document: {unknown('document', claim.document, DOCUMENTS)}")
    if bool(claim.figures) == bool(claim.untested):
        raise invalid(path, f"{where} needs figures, or a reason why it is untested, and not both.")
    for figure in claim.figures:
        for name in filter(None, (figure.test, figure.over)):
            if name not in tests:
                raise invalid(path, f"{where}: {unknown('test', name, tests)}")
        if figure.over and tests[figure.over].device != tests[figure.test].device:
            raise invalid(path, f"{where} divides figures of two kinds of device.")
        if figure.form != "value" and "B" not in tests[figure.test].arms:
            raise invalid(path, f"{where} compares two arms, but the test {figure.test!r} has one.")
        if figure.low is not None and figure.high is not None and figure.low >= figure.high:
            raise invalid(path, f"{where} claims a range from {figure.low} to {figure.high}.")
    if claim.figures and not any(figure.decides for figure in claim.figures):
        raise invalid(path, f"{where} has no figure with a range, so nothing can follow.")
