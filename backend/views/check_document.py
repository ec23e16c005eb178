"""The JSON document of `check`: an arm that was checked without running it."""

from dataclasses import replace

import msgspec

from tokendyno.backend.arms.arguments import Arguments, arguments_of
from tokendyno.backend.arms.check import Checked, prompt_tokens
from tokendyno.backend.config import Request
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.hardware import Machine, peak_rates
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.predict import roofline
from tokendyno.backend.predict.setup import setup_of
from tokendyno.backend.predict.weights import resolved_dtype
from tokendyno.backend.units import bytes_text, seconds_text


class PredictedBytes(msgspec.Struct, frozen=True):
    """Predicted memory of an arm; `total` is the peak of the whole run, to within `margin` percent (0: not stated)."""

    weights: int
    kv: int
    total: int
    margin: float


class StepBound(msgspec.Struct, frozen=True):
    """The roofline bound of a run's last token, or of an encoder's pass, in words too: see `predict/roofline.py`."""

    seconds: float
    words: str


class CheckDocument(msgspec.Struct, frozen=True):
    """An arm after the rules.

    free_bytes      of the device it would use, by which it was checked, and of which it needs `needed_bytes`
    device, gpus    the device and how many of it, 0 for a CPU
    gpus_used       how many of these the arm would use
    assumed         what is taken for granted of a machine that is not here, "" for this one
    """

    model: str
    runnable: bool
    requested: dict[str, str]
    planned: dict[str, str]
    verdicts: list[Verdict]
    predicted_bytes: PredictedBytes
    free_bytes: int
    needed_bytes: int
    arguments: Arguments
    bound: StepBound | None
    details: dict[str, str]
    download_bytes: int
    device: str
    gpus: int
    gpus_used: int
    assumed: str
    kind: str = "check"
    schema: int = 3

    @property
    def summary(self) -> str:
        """Whether and where it would run, what it then needs, and what else happens, with each fix."""
        needed, free = (" ".join(bytes_text(size)) for size in (self.needed_bytes, self.free_bytes))
        summary = f"would {'run' if self.runnable else 'be refused'} on {self.where}, {needed} predicted of {free} free"
        summary += f", at least {self.bound.words}." if self.bound else "."
        for verdict in self.verdicts:
            if verdict.level in ("blocked", "fallback"):
                fix = ", ".join(f"{axis}={choice}" for axis, choice in verdict.fix.items())
                summary += f" {verdict.reason}" + (f" Set {fix}." if fix else "")
        return summary

    @property
    def where(self) -> str:
        uses = f" (it uses {self.gpus_used})" if self.runnable and self.gpus_used < self.gpus else ""
        return f"{self.gpus} x {self.device}{uses}" if self.gpus > 1 else self.device


def step_bound(request: Request, facts: ModelFacts, checked: Checked, machine: Machine) -> StepBound | None:
    """The bound at the longest context that is asked for; None where bandwidth is unknown, and of many requests."""
    work = request.workload
    setup = replace(setup_of(checked.plan, machine), alike=work.temperature == 0)
    rates = peak_rates.of_machine(machine, resolved_dtype(facts, setup.dtype))
    if rates is None or request.traffic is not None:
        return None
    encoder, length = facts.kind == "encoder", prompt_tokens(work)
    length += 0 if encoder else work.max_new_tokens
    step = roofline.bound(facts, setup, length, work.batch_size, rates)
    time, what = " ".join(seconds_text(step.seconds)), "pass over" if encoder else "token at a context of"
    words = f"{time} per {what} {length:,} tokens: {roofline.work(step, rates)}, {roofline.basis(step, rates)}"
    return StepBound(step.seconds, words)


def check_document(
    request: Request, facts: ModelFacts, checked: Checked, machine: Machine, download_bytes: int = 0
) -> CheckDocument:
    """The document of an arm that was checked for a machine. `download_bytes`: what a run would download."""
    memory, parallel, gpus = checked.memory, checked.plan.load.parallel, len(machine.gpus)
    predicted = PredictedBytes(memory.weights, memory.kv, memory.total, 100 * memory.margin)
    return CheckDocument(
        model=request.model,
        runnable=not checked.blocked,
        requested=dict(checked.requested),
        planned=dict(checked.planned),
        verdicts=list(checked.verdicts),
        predicted_bytes=predicted,
        free_bytes=checked.room_bytes,
        needed_bytes=checked.needed_bytes,
        arguments=arguments_of(checked),
        bound=step_bound(request, facts, checked, machine),
        details=dict(checked.details),
        download_bytes=download_bytes,
        device=machine.name,
        gpus=gpus,
        gpus_used=min(gpus, max(parallel.ranks, parallel.devices)),
        assumed=machine.assumed,
    )
