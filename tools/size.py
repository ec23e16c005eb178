"""How large the house is: `python -m tools.size`.

Lines are counted as the formatter would have them: every `# fmt: skip` is taken away first, except where it keeps a
table, a list, tuple, set or dict with 25 constants or more that ends on its line. Circles are of modules that import
each other, also inside functions.
"""

import ast
import graphlib
import io
import re
import subprocess
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("app.py", "backend", "ui", "presets", "tokendyno")
KINDS = {"product": PRODUCT, "tests": ("tests",), "tools": ("tools",)}
CODE = {".py": "py", ".js": "js", ".css": "css"}
GENERATED = ("ui", "bundle")
SKIP = "# fmt: skip"
LITERALS = (ast.List, ast.Tuple, ast.Set, ast.Dict)
TABLE = 25  # constants that make a table of a literal


def main() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [Path(name) for name in listed.split("\n") if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]
    lines, skips = counted([path for path in files if path.suffix in CODE and path.parts[:2] != GENERATED])
    for kind, tops in KINDS.items():
        own = [path for path in lines if path.parts[0] in tops]
        by_code = Counter[str]()
        for path in own:
            by_code["kernels" if path.parts[:2] == ("presets", "kernels") else CODE[path.suffix]] += lines[path]
        parts = ", ".join(f"{name} {count:,}" for name, count in by_code.most_common())
        print(f"{kind:8} {sum(by_code.values()):7,} lines in {len(own):4} files ({parts})")
    print(f"fmt: skip {skips}; files in git {len(files):,}")
    places = Path(), Path("docs"), Path("presets/kernels")
    documents = [path for path in files if path.suffix == ".md" and path.parent in places]
    words = {
        path: sum(bool(re.search(r"\w", word)) for word in (ROOT / path).read_text().split()) for path in documents
    }
    print(f"documents {sum(words.values()):7,} words: " + ", ".join(f"{path.name} {n:,}" for path, n in words.items()))
    circles = list(circles_of(imports(files)))
    print(f"circles of imports: {len(circles)}", *(f"  {' <- '.join(circle)}" for circle in circles), sep="\n")
    print(
        "largest files:",
        *(f"  {lines[path]:5} {path}" for path in sorted(lines, key=lines.__getitem__)[:-11:-1]),
        sep="\n",
    )


def counted(paths: list[Path]) -> tuple[dict[Path, int], int]:
    """Lines of each file after the formatter, and how many `# fmt: skip` there are."""
    skips = 0
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            text = (ROOT / path).read_text(encoding="utf-8")
            if path.suffix == ".py":
                text, found = without_skips(text)
                skips += found
            copy = Path(folder) / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")
        command = ["ruff", "format", "--quiet", "--config", str(ROOT / "pyproject.toml"), folder]
        subprocess.run(command, check=True)
        return {path: len((Path(folder) / path).read_bytes().splitlines()) for path in paths}, skips


def without_skips(text: str) -> tuple[str, int]:
    """The text without `# fmt: skip`, except at the end of a table, and how many there were."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline) if SKIP in text else ()
    skips = {token.start for token in tokens if token.type == tokenize.COMMENT and token.string.startswith(SKIP)}
    tables = {
        node.end_lineno
        for node in ast.walk(ast.parse(text) if skips else ast.Module([], []))
        if isinstance(node, LITERALS) and sum(isinstance(inner, ast.Constant) for inner in ast.walk(node)) >= TABLE
    }
    lines = text.split("\n")
    for number, column in skips:
        if number not in tables:
            lines[number - 1] = lines[number - 1][:column].rstrip()
    return "\n".join(lines), len(skips)


def imports(files: list[Path]) -> dict[str, set[str]]:
    """Which module of the house imports which; what only a type checker reads does not count."""
    names = {
        path: ".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files if path.suffix == ".py"
    }
    modules = set(names.values())
    return {name: set(imported(path, name, modules)) - {name} for path, name in names.items()}


def imported(path: Path, name: str, modules: set[str]) -> Iterator[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    typed = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)]
    ignored = {inner for node in typed for inner in ast.walk(node)}
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and node not in ignored:
            yield from modules & {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node not in ignored:
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            origin = ".".join([*above, *([node.module] if node.module else [])])
            within = {f"{origin}.{alias.name}" for alias in node.names} & modules
            yield from within
            if len(within) < len(node.names) and origin in modules:
                yield origin


def circles_of(graph: dict[str, set[str]]) -> Iterator[list[str]]:
    """One circle after another, each opened at its first arrow before the next is looked for."""
    while True:
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            circle: list[str] = error.args[1]
            graph[circle[1]].discard(circle[0])  # the sorter names a circle against its arrows
            yield circle
        else:
            return


if __name__ == "__main__":
    main()
