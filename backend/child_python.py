"""How this program starts another Python process: where that imports from, and what it said before it ended.

It never imports from the folder in which the user stands: `python -m` would put that first, and a random.py or a
backend/ there would run in place of the real one (https://docs.python.org/3/using/cmdline.html#cmdoption-P).
"""

import os
import site
import sys
from collections.abc import Iterable
from importlib.util import cache_from_source, find_spec
from pathlib import Path

from tokendyno.backend.paths import IMPORTED_FROM, cache_folder
from tokendyno.backend.redact import redact

LAST_WORDS = 300
"""Characters of a process's last words that are shown."""


def python_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module. Give its process `import_variables` too."""
    return [sys.executable, "-P", "-m", module, *arguments]


def import_variables() -> dict[str, str]:
    """Variables with which such a process imports from where this one does. Bytecode goes to the cache where torch has
    none: imports take 4.9 s of CPU time with it, and 9.9 without."""
    entries = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = [os.path.abspath(folder) for folder in entries if folder]  # an empty entry is the current folder
    site_folders = (*site.getsitepackages(), site.getusersitepackages())
    in_site_packages = any(Path(folder).resolve() == IMPORTED_FROM for folder in site_folders)
    if str(IMPORTED_FROM) not in folders and not in_site_packages:  # else all of it would come before PYTHONPATH
        folders.insert(0, str(IMPORTED_FROM))
    variables = {"PYTHONPATH": os.pathsep.join(folders), "PYTHONSAFEPATH": "1"}
    if _lacks_bytecode("torch"):
        variables |= {"PYTHONPYCACHEPREFIX": str(cache_folder() / "bytecode"), "PYTHONDONTWRITEBYTECODE": ""}
    return variables


def _lacks_bytecode(package: str) -> bool:
    """Whether the package is installed without bytecode, which Python would not write there now."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return False
    bytecode = Path(cache_from_source(spec.origin))
    target = bytecode.parent if bytecode.parent.exists() else spec.origin
    writable = not sys.dont_write_bytecode and os.access(target, os.W_OK)
    return not bytecode.exists() and not writable


def last_words(lines: Iterable[str]) -> str:
    """The last line that a process wrote to its standard error, "" if there is none. Indented lines belong to a
    traceback above them."""
    messages = [line for line in lines if line.strip() and not line.startswith(" ")]
    return redact(messages[-1])[:LAST_WORDS].strip() if messages else ""
