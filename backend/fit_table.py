"""What fits, in words: the same rows and sentences for the command line and the page."""

from backend.fit import Fit, Row
from backend.predict.parallel import plan_of
from backend.view import bytes_text, seconds_text

COLUMNS = ("Fits", "Quantization", "KV cache", "Weights", "Cache", "Peak", "Longest context", "Floor per token")
REMARK = "Would not run here"
UNTRIED = {"torchao-int4"}  # it needs a GPU; the other kinds of packed weights were split between processes on a CPU


def columns(found: Fit) -> list[str]:
    """The heads of the columns; the last one only where a row has something to say."""
    return [*COLUMNS, *([REMARK] if any(row.note for row in found.rows) else [])]


def cells(found: Fit) -> list[list[str]]:
    """One row of texts for each combination, in the table's order."""
    return [_cells(found, row)[: len(columns(found))] for row in found.rows]


def _cells(found: Fit, row: Row) -> list[str]:
    over = row.peak_bytes - found.device.memory_bytes
    fits = "yes" if row.fits else f"no, by {_size(over)}"
    longest = f"{row.max_context:,}" if row.max_context else "none"
    if row.max_context == found.facts.max_positions:
        longest += " (all)"
    floor = "n/a" if row.floor_s is None else " ".join(seconds_text(row.floor_s))
    sizes = [_size(size) for size in (row.weights_bytes, row.kv_bytes, row.peak_bytes)]
    return [fits, row.quantization, row.cache, *sizes, longest, floor, row.note]


def heading(found: Fit) -> str:
    """Model, device and work in a sentence."""
    memory = f"{_size(found.device.memory_bytes)}{' free' if found.device.here else ''}"
    batch = f", batch {found.batch:,}" if found.batch > 1 else ""
    limits = f"; {found.limits.bandwidth_bytes_per_s / 1e9:,.4g} GB/s, {found.limits.source}" if found.limits else ""
    each, tail = ("", "") if found.gpus == 1 else (" each", "; all sizes are those of one GPU")
    name = found.device.name if found.gpus == 1 else f"{found.gpus} x {found.device.name}"
    return f"{found.facts.label} on {name} ({memory}{each}{limits}), context {found.context:,} tokens{batch}{tail}"


def best(found: Fit) -> str:
    """The row to take, in a sentence, or what to do where nothing fits."""
    row = found.best
    if row is not None:
        spare = _size(found.device.memory_bytes - row.peak_bytes)
        return (
            f"Fits: quantization={row.quantization}, cache={row.cache}, with {spare} to spare; up to "
            f"{row.max_context:,} tokens. The rows are sorted by what fits with the least loss."
        )
    longest = max(found.rows, key=lambda row: (not row.note, row.max_context), default=None)
    if longest is not None and longest.max_context:
        return (
            f"Nothing fits at {found.context:,} tokens. The longest context is {longest.max_context:,} tokens, with "
            f"quantization={longest.quantization}, cache={longest.cache}. Ask for less, or take a larger device."
        )
    return "Nothing fits, at any context. Take a smaller model or batch, or a larger device."


def remarks(found: Fit) -> list[str]:
    """What should be known beside the table."""
    said = [found.device.note, found.facts.note, found.scores_note, *shared(found)]
    return [remark for remark in said if remark]


def shared(found: Fit) -> list[str]:
    """How several GPUs share the model, what cannot be shared, and what nobody has tried."""
    if found.gpus == 1:
        return []
    facts, gpus = found.facts, found.gpus
    plan, sizes = plan_of(facts), f"tp_size={gpus}"
    match plan:
        case "experts":
            sizes += f", ep_size={gpus}" + (", tp_plan={}" if facts.tied else "")  # its tied head cannot be split
            head = "" if facts.tied else " and its output head"
            how = (
                f"transformers has no tensor-parallel plan for {facts.architecture}: its experts{head} are split, "
                "attention and the whole KV cache are on every GPU."
            )
        case "gathered":
            how = (
                "Matrices are split; attention's results are put together again, so the whole KV cache is on every GPU."
            )
        case _:
            how = "Matrices, vocabulary and KV heads are split; norms are on every GPU."
    untried = sorted({row.quantization for row in found.rows} & UNTRIED)
    untried += sorted({row.cache for row in found.rows} - {"dynamic", "static"})
    return [
        f"As transformers splits it with DistributedConfig({sizes}), which this bench does not run itself. {how} What "
        "GPUs send each other is not in the floor, what NCCL keeps not in the peak.",
        *found.refused,
        f"Untried on several GPUs: {', '.join(untried)}." if untried else "",
    ]


def text(found: Fit) -> str:
    """The table for a terminal."""
    rows = [columns(found), *cells(found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([heading(found), "", *lines, "", best(found), *remarks(found)])


def _size(size_bytes: float) -> str:
    return " ".join(bytes_text(size_bytes))
