"""Whether a mode's limits allow a run: the one place where a request is held against them."""

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.arms.check import prompt_tokens as estimated
from tokendyno.backend.config import Request
from tokendyno.backend.engine.conductor import Job
from tokendyno.backend.engine.worker_memory import PREDICTED_SHARE, worker_limit
from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.hardware import Machine
from tokendyno.backend.hosting.limits import NO_RUNS, Limits
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.models import FORWARD, RANDOM, ModelFacts, without
from tokendyno.backend.models.catalogue import find
from tokendyno.backend.models.files.hub import free_cache_bytes
from tokendyno.backend.optimizations import subject_of
from tokendyno.backend.optimizations.routed import KERNELS as MXFP4_KERNELS
from tokendyno.backend.units import bytes_text, plural

SPARE_DISK_BYTES = 1 << 30
"""What a download leaves free for the history, and for whatever else writes to that disk."""


def check_runs(limits: Limits) -> None:
    if not limits.runs:
        raise InputError(NO_RUNS)


def check_model(ref: str, limits: Limits) -> None:
    """InputError unless the mode's list has this model. An empty list has all."""
    name = without(RANDOM, without(FORWARD, ref.strip()))
    entry = find(name)
    names = {name.casefold(), *((entry.name.casefold(), entry.repo.casefold()) if entry else ())}
    if limits.models and not names & {allowed.casefold() for allowed in limits.models}:
        raise InputError(f"This page does not run {shown(ref)!r}. Choose one of: {', '.join(limits.models)}.")


def check_allowed(
    request: Request, facts: ModelFacts, arms: dict[str, Checked], machine: Machine, limits: Limits
) -> None:
    """InputError unless these limits allow the request. `arms`: each arm as it was checked against the rules."""
    check_model(request.model, limits)
    _check_lengths(request, limits)
    for name, checked in arms.items():
        prefix = f"Arm {name}: " if len(arms) > 1 else ""
        weights = checked.memory.weights
        if limits.model_bytes is not None and weights > limits.model_bytes:
            raise InputError(
                f"{prefix}{facts.label} has {_size(weights)} of weights, over the limit of "
                f"{_size(limits.model_bytes)} here. Choose a smaller model."
            )
        limit = worker_limit(limits, machine)
        if (
            limit is not None
            and machine.device == "cpu"
            and checked.needed_bytes > (room := int(PREDICTED_SHARE * limit))
        ):
            raise InputError(
                f"{prefix}{facts.label} needs {_size(checked.needed_bytes)} of memory as predicted, over the limit of "
                f"{_size(room)} here. Choose a smaller model, batch or length."
            )
        load = checked.plan.load
        unknown_kernels = [load.attention or ""] * load.any_kernel + [kernel for _, kernel in load.kernels_mapping]
        if unknown_kernels and limits.mode != "local":
            raise InputError(
                f"{prefix}{shown(unknown_kernels[0])!r} is a kernel of the Hub that tokendyno does not know. Such code "
                "runs only where tokendyno serves its own user. Choose another."
            )
        refused = [] if limits.hub_kernels else sorted(hub_kernels(checked, facts, machine) - set(limits.kernels))
        if refused:
            raise InputError(
                f"{prefix}kernels from the Hub ({refused[0]}) are binaries, which this page does not download. Choose "
                "another attention, and kernels=off or kernels=local."
            )


def check_download(size: int, limits: Limits) -> None:
    """InputError if so many bytes may not be downloaded here, or do not fit on the disk."""
    if not size:
        return
    if limits.model_bytes is not None and size > limits.model_bytes:
        raise InputError(
            f"This model is a download of {_size(size)}, over the limit of {_size(limits.model_bytes)} here. Choose a "
            "smaller model."
        )
    free = free_cache_bytes()
    if size + SPARE_DISK_BYTES > free:
        raise InputError(
            f"This model is a download of {_size(size)}, but only {_size(free)} of the disk for downloads are free. "
            "Free some, name a folder on another disk with HF_HOME, or choose a smaller model."
        )


def check_room(jobs: list[Job], waiting: int, visitor: Visitor, limits: Limits) -> None:
    """InputError if too many runs are open for one more of this visitor. `waiting`: how many of `jobs` are queued."""
    owner_runs = sum(job.owner == visitor.owner for job in jobs)
    if limits.open_runs is not None and owner_runs >= limits.open_runs:
        raise InputError(
            f"You have {plural(owner_runs, 'run')} queued or running, as many as a visitor may have here. "
            "Wait for one to end, or stop one."
        )
    address_runs = sum(bool(job.address) and job.address == visitor.address for job in jobs)
    if limits.address_runs is not None and address_runs >= limits.address_runs:
        raise InputError(
            f"Your network has {plural(address_runs, 'run')} queued or running, as many as it may have here. "
            "Wait for one to end, then press Run again."
        )
    if waiting >= limits.queued_runs:
        raise InputError(
            f"The queue is full, with {plural(waiting, 'run')} waiting. Wait for one to end, then press Run again."
        )


def hub_kernels(checked: Checked, facts: ModelFacts, machine: Machine) -> set[str]:
    """Repositories of the Hub whose compiled kernels this arm would load."""
    load, repositories = checked.plan.load, set[str]()
    if load.attention is not None and "/" in load.attention:
        repositories.add(load.attention.partition(":")[0])
    subject = subject_of(facts, machine, dict(checked.planned))
    if load.kernels == "hub":
        repositories |= set(subject.hub_kernel_layers.values())
    if subject.runs_mxfp4 and not subject.runs_own_mxfp4:
        repositories.add(MXFP4_KERNELS)
    return repositories


def _check_lengths(request: Request, limits: Limits) -> None:
    work, traffic, quality = request.workload, request.traffic, request.quality
    if quality is not None:  # each text is read once by each arm, which then generates once
        sizes = [len(item.text.encode()) for item in quality.texts]
        prompts, outputs = [quality.context] * (len(sizes) + 1), [quality.positions] * (len(sizes) + 1)
    elif traffic is None:
        sizes = [len(work.prompt.encode())]
        prompts, outputs = [estimated(work)] * work.batch_size, [work.max_new_tokens] * work.batch_size
    else:
        sizes = [len(item.prompt.encode()) for item in traffic.requests]
        prompts = [item.tokens for item in traffic.requests]
        outputs = [item.max_new_tokens for item in traffic.requests]
    total = len(request.arms) * work.repeats * (sum(prompts) + sum(outputs))
    for name, value, most, advice in (
        ("bytes of prompts", sum(sizes), limits.prompt_bytes, "Shorten them."),
        ("tokens of a prompt", max(prompts), limits.prompt_tokens, "Shorten it."),
        ("new tokens of a sequence", max(outputs), limits.new_tokens, "Use fewer."),
        ("sequences in a batch", work.batch_size, limits.batch_size, "Use a smaller batch."),
        ("repeats", work.repeats, limits.repeats, "Use fewer."),
        (
            "tokens of a run (prompt and new tokens of all arms, repeats and sequences)",
            total,
            limits.run_tokens,
            "Use fewer repeats, sequences or tokens.",
        ),
    ):
        if most is not None and value > most:
            raise InputError(f"{value:,} {name} are over the limit of {most:,} here. {advice}")


def _size(size: int) -> str:
    return " ".join(bytes_text(size))
