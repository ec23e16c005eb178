"""Compares two folders of `compare` documents: `python -m tools.bench.same_documents BEFORE AFTER`.

Left out are identifiers, times, samples of memory, and prose (sentences that may be reworded); everything else must be
equal, types and order included. Prints each difference; exit code 1 if there is one.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VOLATILE = re.compile(
    r"^(run|created|versions\.tokendyno|machine\..*|message"
    r"|comparison\.(ratio|low|high|verdict)"
    r"|arms\[\d+\]\.(ttft_s|latency_s(\[\d+\])?|time_s(\[\d+\])?|memory_bytes(\[\d+\])?|memory_samples\..*"
    r"|memory_check\.(peak|allocator)\.(measured|error)|wall_s|phases_s\..*|load\..*|repeats\[\d+\]\..*"
    r"|floor\.(seconds\[\d+\]|note|work)"
    r"|extra\.(warmup_.*|process_.*|cpu_.*|energy.*|.*_s|.*peak.*)|marks.*|spoilers.*"
    r"|compile\.(cold_s|graph_s\[\d+\]|recompiles\[\d+\]\.seconds|cold_before_s|saved_s)"
    r"|summary\.(ttft|latency|run_cv|tokens_per_s|batch_tokens_per_s|peak_memory|floor_s|limit_share|energy).*"
    r"|summary\.(launch_bound|gpu_busy_share)"
    r"|notes\[\d+\]|memory_label|model_note|model_label|clock"
    r"|evidence\[\d+\]\.(proof|reason)|verdicts\[\d+\]\.(reason|source)))$"
)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, value) of every leaf; an empty list or object is a leaf."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for i, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{i}]")
    else:
        yield path, value


def differences(before: Any, after: Any) -> tuple[list[str], int]:
    """What differs between two documents, and how many fields were compared."""
    old, new = dict(leaves(before)), dict(leaves(after))
    found = [f"{path}: missing" for path in old if path not in new and not VOLATILE.match(path)]
    found += [f"{path}: new" for path in new if path not in old and not VOLATILE.match(path)]
    both = [path for path in old if path in new and not VOLATILE.match(path)]
    found += [f"{path}: {old[path]!r} -> {new[path]!r}" for path in both if old[path] != new[path]]
    return found, len(both)


def main() -> int:
    """Compare every document of the first folder with its namesake in the second."""
    before, after = map(Path, sys.argv[1:3])
    failed = 0
    for file in sorted(before.glob("*.json")):
        one, other = (json.loads((folder / file.name).read_text()) for folder in (before, after))
        found, count = differences(one, other)
        failed += bool(found)
        print(f"{file.name}: {count:,} fields, {len(found)} differ")
        for line in found[:20]:
            print(f"  {line[:200]}")
    return int(failed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
