"""The fit table as text: the same rows and sentences for the command line and the page."""

from collections.abc import Mapping

from tokendyno.backend.fit.row import FitRow, Margin
from tokendyno.backend.fit.table import Fit, table_axes
from tokendyno.backend.optimizations import axis_title, choice_title
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
        "n/a" if row.floor_s is None else " ".join(seconds_text(row.floor_s)),
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


def heading(found: Fit) -> str:
    """Model, device and workload in a line."""
    memory = f"{_size(found.device.memory_bytes)}{' free' if found.device.here else ''}"
    batch = f", batch {found.batch:,}" if found.batch > 1 else ""
    limits = f"; {found.limits.bandwidth_bytes_per_s / 1e9:,.4g} GB/s, {found.limits.source}" if found.limits else ""
    each, tail = ("", "") if found.gpus == 1 else (" each", "; sizes are per GPU")
    name = found.device.name if found.gpus == 1 else f"{found.gpus} x {found.device.name}"
    work = "input of" if found.encoder else "context"
    return f"{found.facts.label} on {name} ({memory}{each}{limits}), {work} {found.context:,} tokens{batch}{tail}"


def answer(found: Fit) -> str:
    """The smallest arrangement that fits, in words, or what to do if none does."""
    first, label = found.smallest.found, found.facts.label
    if first is None:
        return f"{label} fits on {_where(found, found.gpus)} in none of {_arrangements(found)}.{_what_would(found)}"
    said = f"{label} {'would fit' if found.smallest.not_here else 'fits'}"
    if first.gpus > found.gpus:
        said = f"{label} fits on {_where(found, found.gpus)} in none of the arrangements tried, and"
    changed = {axis: choice for axis, choice in first.choices.items() if axis != "parallel"}
    how = f"with {choices_named(changed)}" if changed else f"as it is ({first.numbers})"
    shared = f" ({first.choices['parallel']})" if "parallel" in first.choices else ""
    needed, room = (bytes_text(size) for size in (first.needed_bytes, first.room_bytes))
    free = " free" if found.device.here else ""
    sizes = f"{needed[0] if needed[1] == room[1] else ' '.join(needed)} of {' '.join(room)}{free}"
    said += f" on {_where(found, first.gpus)}{shared} {how}: {sizes}{' of each' if first.gpus > 1 else ''}"
    most = first.max_context
    length = f"up to all {most:,} positions" if most == found.facts.max_positions else f"up to {most:,}"
    said += f" at {found.context:,} tokens{f', {length}' if most > found.context else ''}"
    said += ", which is tight: predictions may be off by as much." if first.margin == "tight" else "."
    if changed:
        said += _as_it_is(found)
    return f"{said} It cannot run here as it is: {found.smallest.not_here}" if found.smallest.not_here else said


def arm_text(choices: Mapping[str, str]) -> str:
    """Choices as an arm is written."""
    return ",".join(f"{axis}={choice}" for axis, choice in choices.items())


def _as_it_is(found: Fit) -> str:
    """What it would take to change nothing."""
    unchanged, enough = found.smallest.as_it_is, found.smallest.enough
    if unchanged is None:
        return ""
    said = f" As it is ({unchanged.numbers}) it needs {_size(unchanged.needed_bytes)}"
    if enough is None:
        return f"{said}."
    how = enough.choices["parallel"]
    return f"{said}, or {enough.gpus} such GPUs ({how}) with {_size(enough.needed_bytes)} of each."


def choices_named(choices: Mapping[str, str]) -> str:
    """Changes by their titles, such as "bitsandbytes nf4 (Quantization)"."""
    *others, last = (f"{choice_title(axis, choice)} ({axis_title(axis)})" for axis, choice in choices.items())
    return f"{', '.join(others)} and {last}" if others else last


def _where(found: Fit, gpus: int) -> str:
    """So many GPUs of the device."""
    if found.device.here:
        return "this machine" if gpus == 1 else f"{gpus} GPUs of this machine"
    name = found.device.name.removeprefix("a GPU")
    if name != found.device.name:  # of a size
        return f"{gpus} GPUs{name}" if gpus > 1 else found.device.name
    return f"{gpus} x {name}" if gpus > 1 else f"one {name}"


def _arrangements(found: Fit) -> str:
    tried = found.smallest.tried
    return f"{tried:,} arrangements" if tried > 1 else "the one arrangement that was tried"


def _what_would(found: Fit) -> str:
    """What would make it fit: fewer tokens, several GPUs, another GPU."""
    ways = []
    usable = [row for row in found.rows if not (found.device.here and row.not_here)]
    longest_row = max(usable, key=lambda row: row.max_context, default=None)
    if longest_row is not None and longest_row.max_context:
        ways.append(f"a context of {longest_row.max_context:,} tokens ({arm_text(longest_row.choices)})")
    several = min((row for row in found.rows if row.enough_gpus), key=lambda row: row.enough_gpus, default=None)
    if several is not None:
        ways.append(f"{_where(found, several.enough_gpus)} ({arm_text(several.choices)})")
    card = next((row for row in found.rows if row.smallest_gpu), None)
    if card is not None:
        ways.append(f"{'' if found.gpus == 1 else f'{found.gpus} x '}{card.smallest_gpu} ({arm_text(card.choices)})")
    return f" What would: {'; '.join(ways)}." if ways else " Choose a smaller model or batch, or more GPUs."


def remarks(found: Fit) -> list[str]:
    """Notes below the table."""
    facts = found.facts
    packed = ""
    if facts.quantization:
        packed = f"The checkpoint is packed already ({facts.quantization}): quantization=none leaves it as it is."
    encoder = "An encoder generates nothing and keeps no KV cache: each figure is of one pass over the batch."
    order = ""
    if found.smallest.found is not None and found.smallest.tried > 1:
        order = (
            f"The answer is the first that fits of {_arrangements(found)}: as it is, then what costs nothing, time, "
            "precision, 8 bits, 4 bits, and more GPUs."
        )
    said = [order, found.device.note, facts.note, packed]
    said += [encoder if found.encoder else "", found.scores_note, *shared(found)]
    return [remark for remark in said if remark]


def shared(found: Fit) -> list[str]:
    """How the model is split over several GPUs, what cannot be split, and what was never tested."""
    if found.gpus == 1:
        return []
    facts, gpus = found.facts, found.gpus
    choice = choice_of(facts, gpus)
    runs = f", as parallel={choice} runs it." if choice else f". {NO_CHOICE}"
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
