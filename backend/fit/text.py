"""The fit table as text: the same rows and sentences for the command line and the page."""

from collections.abc import Mapping

from tokendyno.backend.fit.row import FitRow, Margin
from tokendyno.backend.fit.smallest import Arrangement
from tokendyno.backend.fit.table import Fit, table_axes
from tokendyno.backend.optimizations import titles_text
from tokendyno.backend.predict.parallel import NO_CHOICE, choice_of, group_sizes, plan_of
from tokendyno.backend.units import bytes_text, seconds_text

SIGNS: dict[Margin, str] = {"comfortable": "yes", "tight": "tight", "does not fit": "no"}
"""What stands in the first column for each margin."""


def columns(fit: Fit) -> list[str]:
    """Column headings."""
    axes = [axis.title for axis in table_axes(fit.facts)]
    if fit.encoder:
        sizes = ["Weights", "Activations", "Runtime", "Peak", "Margin", "Longest input"]
    else:
        sizes = ["Weights", "KV cache size", "Workspace", "Runtime", "Peak", "Margin", "Longest context"]
    also = ["Besides"] if any(row.beside for row in fit.rows) else []
    return ["Fits", *axes, *also, "Dtype", *sizes, "Would do", f"Bound per {unit(fit)}"]


def unit(fit: Fit) -> str:
    """What a roofline bound is for."""
    return "pass" if fit.encoder else "token"


def cells(fit: Fit, row: FitRow) -> list[str]:
    """The texts of a row, under `columns`."""
    host = f" ({_size(row.kv_host_bytes)} on the host)" if row.kv_host_bytes else ""
    cache = [] if fit.encoder else [f"{_size(row.kv_bytes)}{host}"]
    sizes = [_size(size) for size in (row.workspace_bytes, row.runtime_bytes, row.peak_bytes)]
    also = [titles_text(row.beside) if row.beside else ""] if any(each.beside for each in fit.rows) else []
    return [
        SIGNS[row.margin],
        *(row.choices[axis.name] for axis in table_axes(fit.facts)),
        *also,
        row.dtype,
        _size(row.weights_bytes),
        *cache,
        *sizes,
        margin(fit, row),
        longest(fit, row),
        would_do(fit, row),
        "n/a" if row.floor_s is None else " ".join(seconds_text(row.floor_s)),
    ]


def margin(fit: Fit, row: FitRow) -> str:
    """The margin in bytes and in percent of the memory."""
    share = row.margin_bytes / max(1, fit.device.memory_bytes)
    return f"{'+' if row.margin_bytes >= 0 else '-'}{_size(abs(row.margin_bytes))} ({share:+.0%})"


def longest(fit: Fit, row: FitRow) -> str:
    """The longest context that fits."""
    text = f"{row.max_context:,}" if row.max_context else "none"
    return text + " (all)" if row.max_context == fit.facts.max_positions else text


def would_do(fit: Fit, row: FitRow) -> str:
    """The smallest GPU of the catalogue on which it fits; where it does not fit here, also how many of this one."""
    each = "" if fit.gpus == 1 else f"{fit.gpus} x "
    names = [each + row.smallest_gpu] if row.smallest_gpu else []
    if row.enough_gpus:
        names.append(f"{row.enough_gpus} x {'this GPU' if fit.device.here else fit.device.name}")
    return " or ".join(names) or "no GPU listed"


def heading(fit: Fit) -> str:
    """Model, device and workload in a line."""
    memory = f"{_size(fit.device.memory_bytes)}{' free' if fit.device.here else ''}"
    batch = f", batch {fit.batch:,}" if fit.batch > 1 else ""
    limits = f"; {fit.limits.bandwidth_bytes_per_s / 1e9:,.4g} GB/s, {fit.limits.source}" if fit.limits else ""
    each, tail = ("", "") if fit.gpus == 1 else (" each", "; sizes are per GPU")
    name = fit.device.name if fit.gpus == 1 else f"{fit.gpus} x {fit.device.name}"
    work = "input of" if fit.encoder else "context"
    return f"{fit.facts.label} on {name} ({memory}{each}{limits}), {work} {fit.context:,} tokens{batch}{tail}"


def answer(fit: Fit) -> str:
    """The smallest arrangement that fits, in words, or what to do if none does."""
    first, label = fit.smallest.found, fit.facts.label
    stays = f" {fit.facts.experts_stay}" if fit.facts.experts_stay else ""
    if first is None:
        return f"{label} fits on {_where(fit, fit.gpus)} in none of {_arrangements(fit)}.{stays}{_what_would(fit)}"
    text = f"{label} {'would fit' if fit.smallest.not_here else 'fits'}"
    if first.gpus > fit.gpus:
        text = f"{label} fits on {_where(fit, fit.gpus)} in none of the arrangements tried.{stays} It fits"
    how = f"with {titles_text(first.changes)}" if first.changes else unchanged(fit, first)
    shared = f" ({first.choices['parallel']})" if "parallel" in first.choices else ""
    needed, room = (bytes_text(size) for size in (first.needed_bytes, first.room_bytes))
    free = " free" if fit.device.here else ""
    sizes = f"{needed[0] if needed[1] == room[1] else ' '.join(needed)} of {' '.join(room)}{free}"
    text += f" on {_where(fit, first.gpus)}{shared} {how}: {sizes}{' of each' if first.gpus > 1 else ''}"
    most = first.max_context
    length = f"up to all {most:,} positions" if most == fit.facts.max_positions else f"up to {most:,}"
    text += f" at {fit.context:,} tokens{f', {length}' if most > fit.context else ''}"
    text += ", which is tight: predictions may be off by as much." if first.margin == "tight" else "."
    if first.changes:
        text += _as_it_is(fit)
    return f"{text} It cannot run here as it is: {fit.smallest.not_here}" if fit.smallest.not_here else text


def arm_text(choices: Mapping[str, str]) -> str:
    """Choices as an arm is written."""
    return ",".join(f"{axis}={choice}" for axis, choice in choices.items())


def unchanged(fit: Fit, arrangement: Arrangement) -> str:
    """How the model is where no choice is made: as published, or on a CPU in another number format."""
    published = arrangement.numbers in (fit.facts.quantization, fit.facts.dtype)
    return f"as it is ({arrangement.numbers})" if published else f"in {arrangement.numbers}"


def _as_it_is(fit: Fit) -> str:
    """What it would take to change nothing."""
    as_it_is, enough = fit.smallest.as_it_is, fit.smallest.enough
    if as_it_is is None:
        return ""
    how = unchanged(fit, as_it_is)
    text = f" {how[0].upper()}{how[1:]} it needs {_size(as_it_is.needed_bytes)}"
    if enough is None:
        return f"{text}."
    how = enough.choices["parallel"]
    return f"{text}, or {enough.gpus} such GPUs ({how}) with {_size(enough.needed_bytes)} of each."


def _where(fit: Fit, gpus: int) -> str:
    """The device and how many GPUs of it, in words."""
    if fit.device.here:
        return "this machine" if gpus == 1 else f"{gpus} GPUs of this machine"
    name = fit.device.name.removeprefix("a GPU")
    if name != fit.device.name:  # of a size
        return f"{gpus} GPUs{name}" if gpus > 1 else fit.device.name
    return f"{gpus} x {name}" if gpus > 1 else f"one {name}"


def _arrangements(fit: Fit) -> str:
    tried = fit.smallest.tried
    return f"{tried:,} arrangements" if tried > 1 else "the one arrangement that was tried"


def _what_would(fit: Fit) -> str:
    """What would make it fit: fewer tokens, several GPUs, another GPU."""
    ways = []
    usable = [row for row in fit.rows if not (fit.device.here and row.not_here)]
    longest_row = max(usable, key=lambda row: row.max_context, default=None)
    if longest_row is not None and longest_row.max_context:
        ways.append(f"a context of {longest_row.max_context:,} tokens ({arm_text(longest_row.choices)})")
    several = min((row for row in fit.rows if row.enough_gpus), key=lambda row: row.enough_gpus, default=None)
    if several is not None:
        choices = {**several.choices, "parallel": choice_of(fit.facts, several.enough_gpus)}
        ways.append(f"{_where(fit, several.enough_gpus)} ({arm_text(choices)})")
    card = next((row for row in fit.rows if row.smallest_gpu), None)
    if card is not None:
        ways.append(f"{'' if fit.gpus == 1 else f'{fit.gpus} x '}{card.smallest_gpu} ({arm_text(card.choices)})")
    return f" What would: {'; '.join(ways)}." if ways else " Choose a smaller model or batch, or more GPUs."


def remarks(fit: Fit) -> list[str]:
    """Notes below the table."""
    facts = fit.facts
    packed = ""
    if facts.quantization not in (None, "mxfp4"):  # which has a row of its own
        packed = f"The checkpoint is packed already ({facts.quantization}): quantization=none leaves it as it is."
    encoder = "An encoder generates nothing and keeps no KV cache: each figure is of one pass over the batch."
    order = ""
    if fit.smallest.found is not None and fit.smallest.tried > 1:
        order = (
            f"The answer is the first that fits of {_arrangements(fit)}: as it is, then what costs nothing, time, "
            "precision, 8 bits, 4 bits, and more GPUs."
        )
    notes = [order, fit.device.note, facts.note, packed, encoder if fit.encoder else "", fit.scores_note]
    return [note for note in (*notes, *shared(fit)) if note]


def shared(fit: Fit) -> list[str]:
    """How the model is split over several GPUs, what cannot be split, and what was never tested."""
    if fit.gpus == 1:
        return []
    facts, gpus = fit.facts, fit.gpus
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
        names = sorted({row.choices[axis.name] for row in fit.rows})
        untried += [name for name in names if not axis.choice(name).tried_on_several_gpus]
    return [
        f"Predicted for {gpus} ranks{runs} {how} {_exchanges(fit)} The runtime includes NCCL's buffers.",
        *fit.refused,
        f"Untested on several GPUs: {', '.join(untried)}." if untried else "",
    ]


def _exchanges(fit: Fit) -> str:
    """Whether the bound has what the ranks exchange."""
    if fit.limits is None or fit.limits.link_bytes_per_s is None:
        return "The roofline bound leaves out what they exchange: the bandwidth between these GPUs is unknown."
    return (
        f"The roofline bound has what they exchange, at {fit.limits.link_bytes_per_s / 1e9:,.4g} GB/s each way "
        f"({fit.limits.link}), without the latency of each exchange."
    )


def _size(size_bytes: float) -> str:
    return " ".join(bytes_text(size_bytes))
