"""Where a source file can be mutated: conditions and constants, one change at a time."""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class Site:
    """One mutation.

    path, line    the file, relative to the tree, and the line where the expression starts
    last_line     where it ends
    at_import     whether it runs when the module is imported, not when a function is called
    function      qualified name of the enclosing function; empty at module level
    before, after normalized source of the expression
    start, end    byte offsets of the expression in the file
    number        tells apart equal changes in functions of the same name
    """

    path: str
    line: int
    last_line: int
    at_import: bool
    function: str
    kind: str
    before: str
    after: str
    start: int
    end: int
    number: int = 0

    @property
    def key(self) -> str:
        """Names the mutation without its file and line, so that it can be found again in a rearranged tree."""
        return f"{self.function} | {self.kind} | {self.before} -> {self.after} | {self.number}"

    @property
    def loose_key(self) -> str:
        """The same without the function's name."""
        return f"{self.kind} | {self.before} -> {self.after}"

    def applied(self, source: bytes) -> bytes:
        """The mutated file; all that follows stays on its line."""
        lines = source.count(b"\n", self.start, self.end)
        return source[: self.start] + f"({self.after}".encode() + b"\n" * lines + b")" + source[self.end :]


class _Finder(ast.NodeVisitor):
    """Collects the sites of one file; annotations, decorators and f-strings are left alone."""

    def __init__(self, path: str, source: bytes) -> None:
        self.sites: list[Site] = []
        self._path = path
        self._names: list[str] = []
        self._functions = 0
        self._line_starts = [0]
        for line in source.splitlines(keepends=True):
            self._line_starts.append(self._line_starts[-1] + len(line))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._inside(node.name, [*node.args.defaults, *[d for d in node.args.kw_defaults if d]])
        self._functions += 1
        self._inside(node.name, node.body)
        self._functions -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node.name, node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        pass  # positions inside f-strings are unknown before Python 3.12

    def visit_If(self, node: ast.If | ast.While | ast.IfExp) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self._negate(node.test)
            self.generic_visit(node)

    visit_While = visit_If
    visit_IfExp = visit_If

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        for index, operator in enumerate(node.ops):
            swapped = [*node.ops[:index], SWAPS[type(operator)](), *node.ops[index + 1 :]]
            self._add("compare", node, ast.Compare(node.left, swapped, node.comparators))  # type: ignore[arg-type]
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        self._add("and-or", node, ast.BoolOp(SWAPS[type(node.op)](), node.values))  # type: ignore[arg-type]
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add("not", node, node.operand)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            self._add("boolean", node, ast.Constant(not value))
        elif isinstance(value, int):
            self._add("integer", node, ast.Constant(value + 1))
            if value > 2:
                self._add("integer", node, ast.Constant(2 * value))
        elif isinstance(value, float):
            self._add("number", node, ast.Constant(2 * value if value else 1.0))

    def _inside(self, name: str, nodes: Sequence[ast.AST]) -> None:
        self._names.append(name)
        for node in nodes:
            self.visit(node)
        self._names.pop()

    def _negate(self, test: ast.expr) -> None:
        """Leaves out what `compare` and `not` do already."""
        if not isinstance(test, ast.Compare | ast.Constant) and not (
            isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        ):
            self._add("negate", test, ast.UnaryOp(ast.Not(), test))

    def _add(self, kind: str, node: ast.expr, changed: ast.expr) -> None:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._line_starts[node.lineno - 1] + node.col_offset
        end = self._line_starts[node.end_lineno - 1] + node.end_col_offset
        name, before, after = ".".join(self._names), ast.unparse(node), ast.unparse(ast.fix_missing_locations(changed))
        self.sites.append(
            Site(self._path, node.lineno, node.end_lineno, not self._functions, name, kind, before, after, start, end)
        )


def sources(root: Path, paths: Sequence[str]) -> Iterator[Path]:
    """Python files that these files and folders stand for."""
    for path in paths:
        found = root / path
        yield from sorted(found.rglob("*.py")) if found.is_dir() else [found]


def find(root: Path, paths: Sequence[str]) -> list[Site]:
    """All sites of a tree, numbered."""
    sites: list[Site] = []
    counted: Counter[str] = Counter()
    for file in sources(root, paths):
        source = file.read_bytes()
        finder = _Finder(str(file.relative_to(root)), source)
        finder.visit(ast.parse(source))
        for site in finder.sites:
            sites.append(replace(site, number=counted[site.key]))
            counted[site.key] += 1
    return sites


def pick(sites: Sequence[Site], seed: int, count: int, preferred: Sequence[str] = ()) -> list[Site]:
    """`count` sites: those with a preferred key, in that order, then the others in an order that the seed decides.

    A preferred key that is gone is looked for without its function's name: a function may have been renamed.
    """
    shuffled = sorted(sites, key=lambda site: hashlib.sha256(f"{seed} {site.key}".encode()).digest())
    by_key = {site.key: site for site in shuffled}
    chosen = {key: by_key[key] for key in preferred if key in by_key}
    for key in preferred:
        if key not in chosen:
            wanted = key.split(" | ", 1)[1].rpartition(" | ")[0]
            match = next((s for s in shuffled if s.loose_key == wanted and s.key not in chosen), None)
            if match:
                chosen[match.key] = match
    for site in shuffled:
        chosen.setdefault(site.key, site)
    return list(chosen.values())[:count]
