"""Python source as text, in the style of ruff's formatter; user text becomes a literal or a comment."""

import ast
import io
import math
import sys
import textwrap
import threading
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

WIDTH = 120
"""Characters per line, as in the worker's code, which scripts print."""

_PARSING = threading.Lock()


def parse(text: str) -> ast.Module:
    """The syntax tree of Python source; SyntaxError and ValueError as from `ast.parse`.

    One thread at a time: CPython 3.11 counts the depth of the tree in one place for all threads, and two parses at once
    (a page checks an arm while a run starts) failed with "AST constructor recursion depth mismatch".
    """
    with _PARSING:
        return ast.parse(text)


def quoted(text: str) -> str:
    """A string literal. What is not printable is escaped: line ends, marks that change the writing direction."""
    single = repr(text)  # in single quotes, unless the text has single quotes only
    if single[0] == '"' or text.count('"') > text.count("'"):
        return single
    if '"' not in text:
        return f'"{single[1:-1]}"'
    return '"' + "".join(c if c == "'" else '\\"' if c == '"' else repr(c)[1:-1] for c in text) + '"'


def same_quotes(source: str) -> str:
    """The source with double quotes around every plain literal: `repr`, which axes use, writes single ones."""
    lines = source.split("\n")
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(source).readline))):
        inside = token.string[1:-1]
        if token.type == tokenize.STRING and token.string[0] == "'" and not {'"', "'", "\\"} & set(inside):
            (row, start), (_, end) = token.start, token.end
            line = lines[row - 1]
            lines[row - 1] = f'{line[:start]}"{inside}"{line[end:]}'
    return "\n".join(lines)


def literal(value: Any, start: str = "", indent: int = 0) -> str:
    """`start`, then a literal of a JSON value, on one line or one item per line. `indent` above 0: it is an item."""
    inside = indent + 4
    match value:
        case str():
            return start + quoted(value)
        case dict():
            items = [literal(item, f"{quoted(key)}: ", inside) for key, item in value.items()]
            return _bracket(f"{start}{{", items, "}", indent, after=bool(indent))
        case list():
            items = [literal(item, "", inside) for item in value]
            return _bracket(f"{start}[", items, "]", indent, after=bool(indent))
        case float() if not math.isfinite(value):
            return f'{start}float("{value}")'
        case _:
            return start + repr(value)


def call(start: str, positional: Sequence[str], keywords: Mapping[str, str], indent: int = 0) -> str:
    """`start`, such as "model = load", called with expressions: on one line, two, or one per argument."""
    items = [*positional, *(f"{name}={value}" for name, value in keywords.items())]
    together = " " * (indent + 4) + ", ".join(items)
    line = _bracket(f"{start}(", items, ")", indent)
    if "\n" in line and len(together) <= WIDTH and "\n" not in together:
        return f"{start}(\n{together}\n{' ' * indent})"
    return line


def _bracket(start: str, items: Sequence[str], end: str, indent: int, after: bool = False) -> str:
    """`after`: a comma follows."""
    line = start + ", ".join(items) + end
    if not items or (indent + len(line) + after <= WIDTH and "\n" not in line):
        return line
    inside = " " * (indent + 4)
    return f"{start}\n" + "".join(f"{inside}{item},\n" for item in items) + " " * indent + end


def comment(text: str) -> list[str]:
    """Comment lines, which nothing in `text` can end."""
    safe = "".join(c if c.isprintable() else " " for c in text)
    return textwrap.wrap(safe, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def imports(lines: Iterable[str]) -> list[str]:
    """Import lines in ruff's order: each name once, grouped by module, the standard library first."""
    whole: set[str] = set()
    names: dict[str, set[str]] = {}
    for line in lines:
        match line.replace(",", " ").split():
            case ["from", module, "import", *wanted] if "as" not in wanted:
                names.setdefault(module, set()).update(wanted)
            case _:
                whole.add(line)
    ordered = [*sorted(whole), *(_from(module, sorted(names[module], key=_kind)) for module in sorted(names))]
    stdlib = [line for line in ordered if line.split()[1].partition(".")[0] in sys.stdlib_module_names]
    return [*stdlib, *([""] if stdlib else []), *(line for line in ordered if line not in stdlib)]


def _kind(name: str) -> tuple[int, str]:
    """Constants before classes before functions, as ruff sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _from(module: str, names: Sequence[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    return line if len(line) <= WIDTH else f"from {module} import (\n" + "".join(f"    {n},\n" for n in names) + ")"
