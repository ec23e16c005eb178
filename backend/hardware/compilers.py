"""Whether this machine can compile what torch.compile generates: C++ on a CPU, Triton's launchers in C on a GPU."""

import os
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path

INSTALL = "(Debian: apt-get install g++ python3-dev)"


def compiler_problem(device: str, env: Mapping[str, str] = os.environ) -> str:
    """What torch.compile lacks here, as a clause; "" if nothing. It needs Python's headers, and the compiler that a
    variable names or one of these (torch 2.13: _inductor/config.py, cpp.cxx; Triton 3.6: runtime/build.py)."""
    variable, names, language = ("CC", ("gcc", "clang"), "C") if device == "cuda" else ("CXX", ("g++",), "C++")
    named = env.get(variable)
    if not any(shutil.which(name, path=env.get("PATH")) for name in ([named] if named else names)):
        where = f"{variable} names {named}, which is not here" if named else f"no {' or '.join(names)} on PATH"
        return f"there is no {language} compiler ({where})"
    if not (Path(sysconfig.get_path("include")) / "Python.h").is_file():
        return "the headers of Python (Python.h) are not installed"
    return ""
