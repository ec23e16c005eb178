"""Sentences about a run: its texts, what the figures of an arm show, and what may have disturbed it."""

import time
from collections.abc import Iterable, Sequence

import msgspec

from tokendyno.backend.messages import Annotation, AnnotationKind, Finished
from tokendyno.backend.runs.records import Created, Unit
from tokendyno.backend.runs.row import gpus_of
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import NOISY_CV, Summary
from tokendyno.backend.runs.texts import TextComparison
from tokendyno.backend.units import plural, three
from tokendyno.backend.views.tiles import joined


class AnnotationText(msgspec.Struct, frozen=True):
    """An event that may explain the latency of a token, in words."""

    kind: AnnotationKind
    token: int
    text: str


def texts_sentence(texts: TextComparison | None) -> str:
    """Whether two greedy texts are the same, and why not; "" where there is nothing to compare."""
    if texts is None:
        return ""
    if texts.tokens_equal_until is None:
        return "Both arms generated the same tokens."
    sentence = f"The texts differ from token {texts.tokens_equal_until:,} on (counted from 0)"
    if texts.gap is not None:
        first, second = (repr(text) for text in texts.likeliest)
        distance = f"{three(texts.gap)} logits apart" if texts.gap else "exactly tied"
        sentence += f", where the two likeliest tokens, {first} and {second}, are {distance}"
    causes = ", ".join(texts.causes) or "nothing that is known to change a text"
    return f"{sentence}. The arms differ in {causes}."


def diagnoses(summary: Summary, unit: Unit = "token") -> list[str]:
    if not summary.launch_bound or summary.gpu_busy_share is None:
        return []
    step = "token" if unit == "token" else "pass"
    return [
        f"Launch-bound: the GPU was busy for {three(100 * summary.gpu_busy_share)}% of the time per {step} and "
        "otherwise waited for the next kernel launch. CUDA graphs, compilation or a larger batch reduce these gaps."
    ]


def interference_of(run: Snapshot, name: str) -> list[str]:
    arm = run.arms[name]
    measured_s = sum(end.wall_s for end in arm.finishes.values())
    return interference(arm.interference, run.summaries[name], measured_s, run.unit)


LOCK_CLOCKS = (
    "Clocks below what power and temperature allow stay as they are locked: sudo nvidia-smi --lock-gpu-clocks=MHZ,MHZ, "
    "undone by --reset-gpu-clocks."
)
"""https://docs.nvidia.com/deploy/nvidia-smi/index.html"""


def interference(
    marks: Iterable[tuple[int, Annotation]], summary: Summary, measured_s: float, unit: Unit = "token"
) -> list[str]:
    """One sentence per cause, and one if the runs vary too much. `marks`: (repeat, annotation); `measured_s`: of all
    runs."""
    by_cause: dict[str, list[tuple[int, Annotation]]] = {}
    for repeat, mark in marks:
        by_cause.setdefault(mark.text, []).append((repeat, mark))
    sentences = [_interference(text, of_cause, measured_s, unit) for text, of_cause in by_cause.items()]
    if any(mark.kind == "throttle" for of_cause in by_cause.values() for _, mark in of_cause):
        sentences.append(LOCK_CLOCKS)
    if summary.run_cv is not None and summary.run_cv > NOISY_CV:
        sentences.append(
            f"Noisy: the runs of this arm vary by {three(100 * summary.run_cv)}% (coefficient of variation of their "
            "mean step times). The intervals include this, so they are wide: closing other programs and measuring "
            "again narrows them."
        )
    return sentences


def _interference(text: str, marks: Sequence[tuple[int, Annotation]], measured_s: float, unit: Unit) -> str:
    seconds = sum(mark.seconds for _, mark in marks)
    step = "token" if unit == "token" else "pass"
    runs = len({repeat for repeat, _ in marks})
    where = f"in {runs} runs" if runs > 1 else f"from {step} {marks[0][1].token:,} on"
    length = f"{three(min(seconds, measured_s))} of {three(measured_s)} s" if measured_s else f"{three(seconds)} s"
    return f"Possible interference: {text} for {length}, {where}."


def annotations(marks: Sequence[Annotation]) -> list[AnnotationText]:
    return [
        AnnotationText(mark.kind, mark.token, f"{mark.text} ({joined(mark.seconds)})" if mark.seconds else mark.text)
        for mark in sorted(marks, key=lambda mark: (mark.token, mark.t_s))
    ]


# --- where and when a run was measured -------------------------------------------------------------

SHOWN_VERSIONS = ("torch", "transformers")


def origin_sentence(created: Created) -> str:
    """Where a run that came from a file was recorded; "" for one that ran here."""
    if created.origin == "here":
        return ""
    return f"Recorded on {stamp(created)}."


def stamp(created: Created) -> str:
    """Machine, date and versions of a run."""
    date = time.strftime("%Y-%m-%d", time.gmtime(created.created))
    versions = [f"{name} {created.versions[name]}" for name in SHOWN_VERSIONS if name in created.versions]
    return ", ".join([device_name(created.machine), date, *versions])


def whole_note(created: Created) -> str:
    """The note on the model, and where the run came from; "" where there is neither."""
    note = created.model_note
    sentence = f"{note[0].upper()}{note[1:].rstrip('.')}." if note else ""  # older versions wrote no whole one
    return " ".join(filter(None, [sentence, origin_sentence(created)]))


def device_name(machine: dict[str, str]) -> str:
    if gpus := gpus_of(machine):
        return gpus[0].partition(",")[0]
    cores = f", {machine['cores']} cores" if "cores" in machine else ""
    return f"{machine.get('cpu', 'an unknown machine')}{cores}"


def code_words(finished: Finished | None) -> str:
    """How much generated code of the graphs was kept; "" where nothing was compiled."""
    graphs = finished.code if finished else []
    if not graphs:
        return ""
    characters = sum(graph.characters for graph in graphs)
    kept = sum(bool(graph.packed) for graph in graphs)
    text = f"{plural(len(graphs), 'graph')}, {characters:,} characters"
    return text if kept == len(graphs) else f"{text}; {kept} kept"
