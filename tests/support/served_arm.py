"""A real `tokendyno serve` with a small chat model."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import openai

from tests.support.command_line import POCKET
from tokendyno.backend.paths import ROOT

KEY = "a key"
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}Then{% endif %}"
)


def chat_model(folder: Path) -> str:
    """The embedded model with a chat template: its path."""
    shutil.copytree(POCKET, folder / "pocket")
    (folder / "pocket" / "chat_template.jinja").write_text(TEMPLATE)
    return str(folder / "pocket")


@dataclass(frozen=True)
class ServedArm:
    """A server. `url`: without /v1; `lines`: what it printed until it was ready; `errors`: its standard error."""

    model: str
    url: str
    process: subprocess.Popen[str]
    lines: list[str]
    errors: Path

    def openai(self) -> openai.OpenAI:
        """The client that most programs use."""
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=KEY, max_retries=0, timeout=120)

    def http(self) -> httpx.Client:
        """Plain requests, with the key."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {KEY}"}, timeout=120)


@contextlib.contextmanager
def served_arm(
    folder: Path, model: str, *arguments: str, env: Mapping[str, str] = {"TOKENDYNO_API_KEY": KEY}
) -> Iterator[ServedArm]:
    """Start it; a test may end it."""
    command = [sys.executable, "-m", "tokendyno", "serve", "--model", model, "--port", "0", *arguments]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **env}
        )
    assert process.stdout is not None
    try:
        lines: list[str] = []
        for line in process.stdout:
            lines.append(line.rstrip())
            if "ready" in line:
                break
        assert lines and "ready" in lines[-1], (folder / "log").read_text()
        yield ServedArm(model, lines[-1].split()[-1].removesuffix("/v1"), process, lines, folder / "log")
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
