"""Functions and classes of this package as source text, with all that they need, for scripts to run the same code.

What the worker runs is what a script prints: there is no second copy to keep in step. A definition's own file may
import from other files of this package: those definitions come along. Everything else that it imports becomes an
import of the script.
"""

import ast
import functools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tokendyno.backend.paths import BACKEND
from tokendyno.backend.script.source import parse

_OWN = ["tokendyno", "backend"]
_LINTER_COMMENT = re.compile(r"  # (type: ignore|noqa).*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Definitions:
    """Import lines, and the definitions in an order in which Python can run them."""

    imports: frozenset[str]
    sources: tuple[str, ...]


@dataclass(slots=True)
class _Block:
    """One statement of a file with its comments and, for an assignment, the docstring below it."""

    names: set[str]
    uses: set[str]
    inner_imports: set[str]  # modules of this package that are imported inside it
    source: str


@dataclass(slots=True)
class _File:
    """What one file holds.

    blocks   each by the names that it defines
    imports  import lines of other packages, by the name that they bind
    own      names that it imports from files of this package -> the file
    modules  names of this package's modules and re-exports, which cannot be printed
    """

    blocks: dict[str, _Block] = field(default_factory=dict)
    imports: dict[str, set[str]] = field(default_factory=dict)
    own: dict[str, str] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)


def definitions(wanted: Iterable[tuple[str, str]]) -> Definitions:
    """`wanted`: pairs of a file, relative to the package, and a name in it: ("worker/loop/loop.py", "DecodeLoop").

    Raises ValueError where a name is not defined there, two files define the same name, or a definition imports from
    this package in a way that cannot be printed (a module, or inside a function).
    """
    needed: dict[str, dict[str, _Block]] = {}  # file -> name -> block
    imports: set[str] = set()
    for path, name in wanted:
        _collect(path, name, needed, imports)
    owners: dict[str, str] = {}
    for path, blocks in needed.items():
        for name in {name for block in blocks.values() for name in block.names}:
            if owners.setdefault(name, path) != path:
                raise ValueError(f"Both {owners[name]} and {path} define {name}. Rename one of them.")
    sources = []
    for path in _in_order(needed):
        ids = {id(block) for block in needed[path].values()}
        ordered = {id(block): block for block in _file(path).blocks.values() if id(block) in ids}
        sources += [block.source for block in ordered.values()]
    return Definitions(frozenset(imports), tuple(sources))


def _collect(path: str, name: str, needed: dict[str, dict[str, _Block]], imports: set[str]) -> None:
    file = _file(path)
    if name in needed.get(path, {}):
        return
    if name not in file.blocks:
        raise ValueError(f"{path} does not define {name}.")
    block = file.blocks[name]
    if block.inner_imports:
        raise ValueError(f"{name} in {path} imports {', '.join(block.inner_imports)} inside a function. Move it up.")
    needed.setdefault(path, {})[name] = block
    for used in sorted(block.uses):
        if used in file.blocks:
            _collect(path, used, needed, imports)
        elif used in file.own:
            _collect(file.own[used], used, needed, imports)
        elif used in file.modules:
            raise ValueError(f"{name} in {path} uses {used} of this package. Import what it needs from there by name.")
        else:
            imports |= file.imports.get(used, set())


def _in_order(paths: Iterable[str]) -> list[str]:
    """Files after those that they import."""
    done: dict[str, None] = {}

    def visit(path: str) -> None:
        for imported in dict.fromkeys(_file(path).own.values()):
            if imported in wanted and imported not in done:
                visit(imported)
        done.setdefault(path)

    wanted = list(paths)
    for path in wanted:
        visit(path)
    return list(done)


@functools.cache
def _file(path: str) -> _File:
    text = (BACKEND / path).read_text(encoding="utf-8")
    lines = text.split("\n")
    file = _File()
    last: _Block | None = None
    for node in parse(text).body:
        match node:
            case ast.Import() | ast.ImportFrom():
                _add_import(file, node)
            case ast.Expr(value=ast.Constant(value=str())) if last is not None:
                last.source += "\n" + _source(lines, node)
                continue
            case ast.FunctionDef() | ast.ClassDef() | ast.Assign() | ast.AnnAssign():
                block = _Block(set(_defined(node)), _used(node), _inner_imports(node), _source(lines, node))
                file.blocks |= dict.fromkeys(block.names, block)
                last = block if isinstance(node, ast.Assign | ast.AnnAssign) else None
                continue
        last = None
    return file


def _add_import(file: _File, node: ast.Import | ast.ImportFrom) -> None:
    for alias in node.names:
        bound = alias.asname or alias.name.partition(".")[0]
        if isinstance(node, ast.ImportFrom) and (module := (node.module or "").split("."))[:2] == _OWN:
            path = "/".join(module[2:]) + ".py"
            if alias.asname is None and (BACKEND / path).is_file():
                file.own[bound] = path
            else:
                file.modules.add(bound)
            continue
        line = ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), "names": [alias]}))
        file.imports.setdefault(bound, set()).add(line)


def _defined(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            for target in targets:
                yield from (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _used(node: ast.AST) -> set[str]:
    """Names that a definition reads, in quoted annotations too."""
    names: set[str] = set()
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name):
                names.add(name)
            case ast.arg(annotation=ast.expr() as note) | ast.AnnAssign(annotation=note):
                names |= _quoted_names(note)
            case ast.FunctionDef(returns=ast.expr() as note):
                names |= _quoted_names(note)
    return names


def _inner_imports(node: ast.AST) -> set[str]:
    modules = [part.module or "" for part in ast.walk(node) if isinstance(part, ast.ImportFrom)]
    modules += [alias.name for part in ast.walk(node) if isinstance(part, ast.Import) for alias in part.names]
    return {module for module in modules if module.split(".")[:2] == _OWN}


def _quoted_names(annotation: ast.expr) -> set[str]:
    names: set[str] = set()
    for part in ast.walk(annotation):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            names |= {name.id for name in ast.walk(parse(part.value)) if isinstance(name, ast.Name)}
    return names


def _source(lines: list[str], node: ast.stmt) -> str:
    """Its whole lines, with decorators and the comment lines right above."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))]) - 1
    while first > 0 and lines[first - 1].startswith("#"):
        first -= 1
    return _LINTER_COMMENT.sub("", "\n".join(lines[first : node.end_lineno]))
