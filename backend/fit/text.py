"""The fit table as text: the same rows and sentences for the command line and the page."""

from backend.fit.table import Fit, FitRow, table_axes
from backend.predict.parallel import group_sizes, plan_of
from backend.units import bytes_text, seconds_text

SIZES = ("Weights", "Cache", "Peak", "Longest context", "Roofline bound per token")
REMARK = "Would not run here"


def usual_columns() -> list[str]:
    """Column headings of a table without remarks."""
    return ["Fits", *(axis.title for axis in table_axes()), *SIZES]


def columns(found: Fit) -> list[str]:
    """Column headings; the last column exists only if some row has a remark."""
    return [*usual_columns(), *([REMARK] if any(row.note for row in found.rows) else [])]


def cells(found: Fit) -> list[list[str]]:
    """The texts of each row, in the table's order."""
    return [_cells(found, row)[: len(columns(found))] for row in found.rows]


def _cells(found: Fit, row: FitRow) -> list[str]:
    over = row.peak_bytes - found.device.memory_bytes
    fits = "yes" if row.fits else f"no, by {_size(over)}"
    longest = f"{row.max_context:,}" if row.max_context else "none"
    if row.max_context == found.facts.max_positions:
        longest += " (all)"
    floor = "n/a" if row.floor_s is None else " ".join(seconds_text(row.floor_s))
    sizes = [_size(size) for size in (row.weights_bytes, row.kv_bytes, row.peak_bytes)]
    return [fits, *row.choices.values(), *sizes, longest, floor, row.note]


def heading(found: Fit) -> str:
    """Model, device and workload in a line."""
    memory = f"{_size(found.device.memory_bytes)}{' free' if found.device.here else ''}"
    batch = f", batch {found.batch:,}" if found.batch > 1 else ""
    limits = f"; {found.limits.bandwidth_bytes_per_s / 1e9:,.4g} GB/s, {found.limits.source}" if found.limits else ""
    each, tail = ("", "") if found.gpus == 1 else (" each", "; sizes are per GPU")
    name = found.device.name if found.gpus == 1 else f"{found.gpus} x {found.device.name}"
    return f"{found.facts.label} on {name} ({memory}{each}{limits}), context {found.context:,} tokens{batch}{tail}"


def best(found: Fit) -> str:
    """The best row in a sentence, or what to do if nothing fits."""
    row = found.best
    if row is not None:
        spare = _size(found.device.memory_bytes - row.peak_bytes)
        return (
            f"Fits: {_arm(row)}, with {spare} to spare; up to "
            f"{row.max_context:,} tokens of context. Rows that fit come first, least lossy first."
        )
    longest = max(found.rows, key=lambda row: (not row.note, row.max_context), default=None)
    if longest is not None and longest.max_context:
        return (
            f"Nothing fits at {found.context:,} tokens. The longest context is {longest.max_context:,} tokens, with "
            f"{_arm(longest)}. Shorten the context or choose a larger device."
        )
    return "Nothing fits at any context length. Choose a smaller model or batch, or a larger device."


def remarks(found: Fit) -> list[str]:
    """Notes below the table."""
    said = [found.device.note, found.facts.note, found.scores_note, *shared(found)]
    return [remark for remark in said if remark]


def shared(found: Fit) -> list[str]:
    """How the model is split over several GPUs, what cannot be split, and what was never tested."""
    if found.gpus == 1:
        return []
    facts, gpus = found.facts, found.gpus
    tensor, expert = group_sizes(facts, gpus)
    choice = f"parallel={'expert' if expert > 1 else 'tensor'}-{gpus}"
    if plan_of(facts) == "gathered":
        how = "Matrices are split, but attention outputs are gathered, so every GPU holds the whole KV cache."
    elif expert > 1:
        how = "Whole experts are shared out; other matrices, vocabulary and KV heads are split; norms are replicated."
    else:
        how = "Matrices, vocabulary and KV heads are split; norms are replicated."
    untried = []
    for axis in table_axes():
        names = sorted({row.choices[axis.name] for row in found.rows})
        untried += [name for name in names if not axis.choice(name).tried_on_several_gpus]
    return [
        f"Predicted for {tensor} ranks, as {choice} runs dense weights. {how} The roofline "
        "bound leaves out communication between GPUs, the peak leaves out NCCL's buffers.",
        *found.refused,
        f"Untested on several GPUs: {', '.join(untried)}." if untried else "",
    ]


def text(found: Fit) -> str:
    """The table for a terminal, with its heading and notes."""
    rows = [columns(found), *cells(found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([heading(found), "", *lines, "", best(found), *remarks(found)])


def _arm(row: FitRow) -> str:
    return ", ".join(f"{axis}={choice}" for axis, choice in row.choices.items())


def _size(size_bytes: float) -> str:
    return " ".join(bytes_text(size_bytes))
