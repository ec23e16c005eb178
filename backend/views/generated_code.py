"""The code that Inductor generated for an arm's graphs: in a few words beside the ledger, and as a file."""

from tokendyno.backend.messages import Finished
from tokendyno.backend.runs.snapshot import Snapshot

_LEFT_OUT = "# {:,} characters: left out, the code of an arm's graphs is kept up to 2 MiB\n"


def code_words(end: Finished | None) -> str:
    """How much of it was kept; "" where nothing was compiled."""
    graphs = end.code if end else []
    if not graphs:
        return ""
    size = sum(one.characters for one in graphs)
    kept = sum(bool(one.packed) for one in graphs)
    said = f"{len(graphs)} graph{'s' * (len(graphs) != 1)}, {size:,} characters"
    return said if kept == len(graphs) else f"{said}; {kept} kept"


def code_file(run: Snapshot) -> str:
    """The code of every arm, each graph under its id as the ledger and torch's own tools name it; "" where none is."""
    parts = []
    for name, arm in run.arms.items():
        for one in arm.finished.code if arm.finished else []:
            head = f"# {'-' * 20} arm {name}, graph {one.id or 'without id'} {'-' * 20}\n"
            parts.append(head + (one.text if one.packed else _LEFT_OUT.format(one.characters)))
    return "\n".join(parts)
