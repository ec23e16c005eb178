"""What earlier runs of the same shape tell about the next one: how long its phases take, and what a choice costs at its
start."""

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from tokendyno.backend.config import Request, Workload
from tokendyno.backend.messages import PhaseName, Progress
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.plan import Plan
from tokendyno.backend.runs.records import ArmEvent, ArmPlanned, Created, Ended, WaitKeys
from tokendyno.backend.runs.store import Store

LOADING: tuple[PhaseName, ...] = ("load", "quantize")
PREPARING: tuple[PhaseName, ...] = ("compile", "warmup")
WHOLE: tuple[PhaseName, ...] = ("run", "prove", "quality")

MAX_READ = 4
"""Runs of the same shape that are read, the newest first."""

MAX_RUNS = 40
"""Runs of the same model whose shapes are compared."""


class Place(NamedTuple):
    """Where a run is carried out: the facts of its machine, and the versions of its packages."""

    machine: Mapping[str, str]
    versions: Mapping[str, str]


def wait_keys(plan: Plan, workload: Workload, place: Place) -> WaitKeys:
    """The keys of an arm: runs with equal ones should wait as long. Lengths are rounded up to powers of two."""
    load = _hash(plan.load_key, *_kind(place))
    batch, *shape = lengths(workload)
    run = _hash(load, plan.generate, batch, *shape)
    return WaitKeys(load, run, _hash(plan, _stamp(plan.load.source), _kind(place)[0], place.versions))


def lengths(workload: Workload) -> tuple[int, int, int]:
    """Rows, and tokens of a prompt and an output, rounded up to powers of two."""
    prompt = workload.prompt_tokens or len((workload.system + workload.prompt).encode())
    return workload.batch_size, _next_power_of_two(prompt), _next_power_of_two(workload.max_new_tokens)


def alike(created: Created, here: Place) -> bool:
    """Whether a run was made on this kind of machine, with these versions."""
    return _kind(Place(created.machine, created.versions)) == _kind(here)


def _kind(place: Place) -> tuple[dict[str, str], list[str]]:
    facts = {name: fact for name, fact in place.machine.items() if name not in ("python", "system", "memory", "uuid")}
    return facts, [place.versions.get(name, "") for name in ("torch", "transformers")]


def _stamp(source: ModelSource) -> list[tuple[str, int, int]]:
    """Name, size and time of a local model's files: another training run may have written them again."""
    if not source.path:
        return []
    path = Path(source.path)
    files = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    stats = [(file.name, file.stat()) for file in files if file.is_file()]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def expected_s(store: Store, created: Created, arm: ArmPlanned) -> dict[PhaseName, float]:
    """Seconds of each phase in the newest earlier run with the same key; phases that none of them had are left out."""
    expected: dict[PhaseName, float] = {}
    runs_read = 0
    for earlier in store.recent(created.request.model, MAX_RUNS):
        comparable = {before.name: _same_phases(before.waits, arm.waits) for before in earlier.arms}
        if earlier.id == created.id or not any(comparable.values()):
            continue
        if runs_read == MAX_READ or len(expected) == len(LOADING + PREPARING):
            break
        runs_read += 1
        for record in store.ended_phases(earlier.id):
            assert isinstance(record.event, Progress)
            if record.event.phase in comparable.get(record.arm, ()):
                expected.setdefault(record.event.phase, record.event.seconds)
    return expected


def whole_s(store: Store, created: Created) -> dict[str, dict[PhaseName, float]]:
    """By arm, the seconds of all its runs, proofs and texts in the newest run between the same arms; {} without one."""
    request, keys = created.request, [arm.waits.run for arm in created.arms]
    for earlier in store.recent(request.model, MAX_RUNS):
        if earlier.id == created.id or _course(earlier.request) != _course(request):
            continue
        if not all(keys) or [arm.waits.run for arm in earlier.arms] != keys:
            continue
        seconds_of: dict[str, dict[PhaseName, float]] = {arm.name: {} for arm in created.arms}
        names = {before.name: arm.name for before, arm in zip(earlier.arms, created.arms, strict=True)}
        for record in store.read(earlier.id):
            match record:
                case ArmEvent(arm=name, event=Progress(state="end", phase=phase, seconds=seconds)):
                    took = seconds_of[names[name]]
                    if "run" in took and phase in PREPARING:  # for texts that are read after the runs
                        phase = "quality"
                    if phase in WHOLE:
                        took[phase] = took.get(phase, 0.0) + seconds
                case Ended(status="done"):
                    return seconds_of
    return {}


def _course(request: Request) -> tuple[object, ...]:
    """What decides how long all runs together take: when to stop, and of many requests about how many there are, with
    how many tokens, over how many seconds."""
    stop = (request.until_s, request.workload.repeats, request.quality)
    if request.traffic is None:
        return stop
    requests = request.traffic.requests
    new_tokens, last_s = sum(r.max_new_tokens for r in requests), max(r.arrival_s for r in requests)
    return *stop, *map(_next_power_of_two, (len(requests), new_tokens, round(last_s)))


def _same_phases(earlier: WaitKeys, now: WaitKeys) -> tuple[PhaseName, ...]:
    """The phases that should take as long as in an earlier arm with these keys."""
    loading = LOADING if now.load and earlier.load == now.load else ()
    return loading + (PREPARING if now.run and earlier.run == now.run else ())


def _next_power_of_two(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


def _hash(*parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:16]


# --- what a choice costs at the start ---------------------------------------------------------------

Choices = frozenset[tuple[str, str]]


class Start(NamedTuple):
    """What an arm took before its first run, with a model that it had to load."""

    load_key: str
    load_s: float
    prepare_s: float


class StartCosts:
    """What each choice costs at the start of a run: how many seconds earlier runs here took longer to be ready with it
    than without it.

    Two arms are compared if the same was asked of them but for that choice, with prompts and outputs of about the same
    lengths, on this machine with these versions. Where loading is the same by its key, only what comes after it is
    compared: the first arm of a run finds files that nobody has read yet. Each figure is a median.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._starts_of = dict[str, dict[str, Start]]()

    def of(self, model: str, here: Place) -> dict[str, float]:
        """Seconds by added choices, as `key_of` writes these. InputError if the history cannot be read now."""
        defaults = {axis.name: axis.default for axis in all_axes()}
        starts: dict[tuple[int, ...], dict[Choices, list[Start]]] = defaultdict(lambda: defaultdict(list))
        for created in self._store.recent(model, MAX_RUNS):
            if created.request.traffic or created.origin != "here" or not alike(created, here):
                continue
            starts_by_arm = self._starts(created)
            for arm in created.arms:
                if arm.name in starts_by_arm and not any(verdict.level == "fallback" for verdict in arm.verdicts):
                    chosen = frozenset(pair for pair in arm.requested.items() if pair[1] != defaults.get(pair[0]))
                    starts[lengths(created.request.workload)][chosen].append(starts_by_arm[arm.name])
        costs = defaultdict[str, list[float]](list)
        for by_choices in starts.values():
            for base, base_starts in by_choices.items():
                for chosen, chosen_starts in by_choices.items():
                    if base < chosen:
                        seconds, added = _longer_s(base_starts, chosen_starts), dict(chosen - base)
                        costs[key_of(added, False)].append(seconds)
                        if not base:
                            costs[key_of(added, True)].append(seconds)
        return {key: median(seconds) for key, seconds in costs.items()}

    def _starts(self, created: Created) -> dict[str, Start]:
        """By arm that has run, its start; without those whose worker had the model already."""
        if created.id in self._starts_of:
            return self._starts_of[created.id]
        spent: dict[str, dict[str, float]] = {arm.name: {} for arm in created.arms}
        for record in self._store.ended_phases(created.id):
            assert isinstance(record.event, Progress)
            took = spent[record.arm]
            if "run" not in took:  # what comes later is for texts that are read
                took[record.event.phase] = took.get(record.event.phase, 0.0) + record.event.seconds
        keys = {arm.name: arm.waits.load for arm in created.arms}
        starts_by_arm = {
            name: Start(keys[name], _sum(took, LOADING), _sum(took, PREPARING))
            for name, took in spent.items()
            if {"load", "run"} <= took.keys()
        }
        if all("run" in took for took in spent.values()):
            self._starts_of[created.id] = starts_by_arm
        return starts_by_arm


def key_of(choices: Mapping[str, str], whole: bool) -> str:
    """The choices in the order of their names; `whole`: added to an arm of which nothing else was asked."""
    return ("whole " if whole else "") + " ".join(f"{axis}={choice}" for axis, choice in sorted(choices.items()))


def _sum(took: Mapping[str, float], phases: tuple[str, ...]) -> float:
    return sum(took.get(phase, 0.0) for phase in phases)


def _longer_s(before: list[Start], after: list[Start]) -> float:
    seconds = median(start.prepare_s for start in after) - median(start.prepare_s for start in before)
    if {start.load_key for start in before} == {start.load_key for start in after}:
        return seconds
    return seconds + median(start.load_s for start in after) - median(start.load_s for start in before)
