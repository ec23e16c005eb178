"""The fit table as text: the same rows and sentences for the command line and the page."""

from collections.abc import Callable

from tokendyno.backend.fit.row import FitRow, Margin
from tokendyno.backend.fit.table import Fit, table_axes
from tokendyno.backend.predict.parallel import NO_CHOICE, choice_of, group_sizes, plan_of
from tokendyno.backend.units import bytes_text, seconds_text

SIGNS: dict[Margin, str] = {"comfortable": "yes", "tight": "tight", "does not fit": "no"}
"""What stands in the first column for each margin."""


def columns(found: Fit) -> list[str]:
    """Column headings."""
    axes = [axis.title for axis in table_axes(found.facts)]
    if found.encoder:
        sizes = ["Weights", "Activations", "Runtime", "Peak", "Margin", "Longest input"]
    else:
        sizes = ["Weights", "KV cache size", "Workspace", "Runtime", "Peak", "Margin", "Longest context"]
    return ["Fits", *axes, *sizes, "Would do", f"Bound per {unit(found)}"]


def unit(found: Fit) -> str:
    """What a roofline bound is for."""
    return "pass" if found.encoder else "token"


def cells(found: Fit, row: FitRow) -> list[str]:
    """The texts of a row, under `columns`."""
    cache = [] if found.encoder else [_size(row.kv_bytes)]
    sizes = [_size(size) for size in (row.workspace_bytes, row.runtime_bytes, row.peak_bytes)]
    return [
        SIGNS[row.margin],
        *row.choices.values(),
        _size(row.weights_bytes),
        *cache,
        *sizes,
        margin(found, row),
        longest(found, row),
        would_do(found, row),
        bound_text(row),
    ]


def margin(found: Fit, row: FitRow) -> str:
    """The margin in bytes and in percent of the memory."""
    share = row.margin_bytes / max(1, found.device.memory_bytes)
    return f"{'+' if row.margin_bytes >= 0 else '-'}{_size(abs(row.margin_bytes))} ({share:+.0%})"


def longest(found: Fit, row: FitRow) -> str:
    """The longest context that fits."""
    text = f"{row.max_context:,}" if row.max_context else "none"
    return text + " (all)" if row.max_context == found.facts.max_positions else text


def would_do(found: Fit, row: FitRow) -> str:
    """The smallest GPU of the catalogue on which it fits; where it does not fit here, also how many of this one."""
    each = "" if found.gpus == 1 else f"{found.gpus} x "
    found_on = [each + row.smallest_gpu] if row.smallest_gpu else []
    if row.enough_gpus:
        name = "this GPU" if found.device.here else found.device.name
        found_on.append(f"{row.enough_gpus} x {name}")
    return " or ".join(found_on) or "no GPU listed"


def bound_text(row: FitRow) -> str:
    """The roofline bound."""
    return "n/a" if row.floor_s is None else " ".join(seconds_text(row.floor_s))


def heading(found: Fit) -> str:
    """Model, device and workload in a line."""
    memory = f"{_size(found.device.memory_bytes)}{' free' if found.device.here else ''}"
    batch = f", batch {found.batch:,}" if found.batch > 1 else ""
    limits = f"; {found.limits.bandwidth_bytes_per_s / 1e9:,.4g} GB/s, {found.limits.source}" if found.limits else ""
    each, tail = ("", "") if found.gpus == 1 else (" each", "; sizes are per GPU")
    name = found.device.name if found.gpus == 1 else f"{found.gpus} x {found.device.name}"
    work = "input of" if found.encoder else "context"
    return f"{found.facts.label} on {name} ({memory}{each}{limits}), {work} {found.context:,} tokens{batch}{tail}"


Named = Callable[[FitRow], str]
"""Names the choices of a row: as an arm is written, or by the titles that a page shows."""


def arm_text(row: FitRow) -> str:
    """The choices of a row as an arm is written."""
    return ", ".join(f"{axis}={choice}" for axis, choice in row.choices.items())


def best(found: Fit, named: Named = arm_text) -> str:
    """The best row in a sentence, or what to do if nothing fits. Where what fits cannot run here, the reason."""
    if found.best is not None:
        return f"Fits: {_told(found, found.best, named)}"
    fitting = next((row for row in found.rows if row.fits), None)
    if fitting is None:
        return _nothing(found, named)
    return f"Would fit: {_told(found, fitting, named)} It cannot run here as it is: {fitting.not_here}"


def _told(found: Fit, row: FitRow, named: Named) -> str:
    """A row that fits, in words."""
    length = f"inputs of up to {row.max_context:,} tokens" if found.encoder else f"up to {row.max_context:,} tokens"
    tight = ", which is tight: predictions may be off by as much" if row.margin == "tight" else ""
    card = (
        f" The smallest GPU listed that would do: {row.smallest_gpu}." if row.smallest_gpu and found.gpus == 1 else ""
    )
    return f"{named(row)}, with {_size(row.margin_bytes)} to spare{tight}; {length}.{card}"


def _nothing(found: Fit, named: Named) -> str:
    """What would make it fit: a choice that is not in the table, fewer tokens, a smaller batch, another GPU, several
    GPUs."""
    ways = []
    if found.remedy:
        ways.append(
            f"{', '.join(f'{axis}={choice}' for axis, choice in found.remedy.items())} ({named(found.rows[0])})"
        )
    usable = [row for row in found.rows if not (found.device.here and row.not_here)]
    longest_row = max(usable, key=lambda row: row.max_context, default=None)
    if longest_row is not None and longest_row.max_context:
        ways.append(f"a context of {longest_row.max_context:,} tokens ({named(longest_row)})")
    several = min((row for row in found.rows if row.enough_gpus), key=lambda row: row.enough_gpus, default=None)
    if several is not None:
        name = "of this GPU" if found.device.here else found.device.name
        ways.append(f"{several.enough_gpus} x {name} ({named(several)})")
    card = next((row for row in found.rows if row.smallest_gpu), None)
    if card is not None:
        ways.append(f"{'' if found.gpus == 1 else f'{found.gpus} x '}{card.smallest_gpu} ({named(card)})")
    if not ways:
        return f"Nothing fits at {found.context:,} tokens. Choose a smaller model or batch, or more GPUs."
    return f"Nothing fits at {found.context:,} tokens. What would: {'; '.join(ways)}."


def remarks(found: Fit) -> list[str]:
    """Notes below the table."""
    facts = found.facts
    packed = ""
    if facts.quantization:
        packed = f"The checkpoint is packed already ({facts.quantization}): quantization=none leaves it as it is."
    encoder = "An encoder generates nothing and keeps no KV cache: each figure is of one pass over the batch."
    said = [found.device.note, facts.note, packed, encoder if found.encoder else "", found.scores_note, *shared(found)]
    return [remark for remark in said if remark]


def shared(found: Fit) -> list[str]:
    """How the model is split over several GPUs, what cannot be split, and what was never tested."""
    if found.gpus == 1:
        return []
    facts, gpus = found.facts, found.gpus
    choice = choice_of(facts, gpus)
    runs = f", as parallel={choice} runs dense weights." if choice else f". {NO_CHOICE}"
    if plan_of(facts) == "gathered":
        how = "Matrices are split, but attention outputs are gathered, so every GPU holds the whole KV cache."
    elif group_sizes(facts, gpus)[1] > 1:
        how = "Whole experts are shared out; other matrices, vocabulary and KV heads are split; norms are replicated."
    else:
        how = "Matrices, vocabulary and KV heads are split; norms are replicated."
    untried = []
    for axis in table_axes(facts):
        names = sorted({row.choices[axis.name] for row in found.rows})
        untried += [name for name in names if not axis.choice(name).tried_on_several_gpus]
    return [
        f"Predicted for {gpus} ranks{runs} {how} {_exchanges(found)} The runtime includes NCCL's buffers.",
        *found.refused,
        f"Untested on several GPUs: {', '.join(untried)}." if untried else "",
    ]


def _exchanges(found: Fit) -> str:
    """Whether the bound has what the ranks exchange."""
    if found.limits is None or found.limits.link_bytes_per_s is None:
        return "The roofline bound leaves out what they exchange: the bandwidth between these GPUs is unknown."
    return (
        f"The roofline bound has what they exchange, at {found.limits.link_bytes_per_s / 1e9:,.4g} GB/s each way "
        f"({found.limits.link}), without the latency of each exchange."
    )


def _size(size_bytes: float) -> str:
    return " ".join(bytes_text(size_bytes))
