"""The command line at a real terminal: nothing wraps, Ctrl-C leaves it clean."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import time

import pytest
from rich.cells import cell_len

from tokendyno.backend.paths import ROOT

CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Session:
    """A command at a pseudo-terminal of `columns`."""

    def __init__(self, columns: int, *arguments: str, **env: str) -> None:
        self.master, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        inherited = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tokendyno", *arguments],
            stdin=other,
            stdout=other,
            stderr=other,
            cwd=ROOT,
            env={**inherited, "PYTHONPATH": path, "TERM": "xterm", **env},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(other)
        self.text = ""

    def read(self, until: str = "", seconds: float = 120) -> str:
        """What it has written so far, up to `until` or its end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and not (until and until in self.text):
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the other end is closed
                break
            self.text += data.decode()
        return self.text

    def end(self) -> int:
        self.read()
        os.close(self.master)
        return self.process.wait(30)


def screen_lines(text: str) -> list[str]:
    """The lines that stay: a carriage return with "erase to the end" begins a line anew."""
    return [line.split("\r\x1b[K")[-1] for line in text.replace("\r\n", "\n").split("\n")]


@pytest.mark.slow
def test_a_run_fits_the_terminal_and_leaves_no_progress_behind() -> None:
    """The line is looked at ten times a second, so that its last state may never be shown."""
    session = Session(80, "run", "--arm", "dtype=float32", "--max-new-tokens", "150", "--ignore-eos", "--all")
    assert session.end() == 0, session.text
    assert "A run " in session.text and "/150 tokens" in session.text and "━" in session.text
    lines = screen_lines(session.text)
    assert max(map(cell_len, (CODE.sub("", line) for line in lines))) <= 80
    assert not any("/150 tokens" in line or "\x1b[K" in line for line in lines)
    colored = {match[0] for line in lines for match in CODE.finditer(line)}
    assert colored and all(code.endswith("m") for code in colored)
    assert all(line.count("\x1b[0m") == len(re.findall(r"\x1b\[[1-9]", line)) for line in lines)
