"""The examples of docs/library.md and of README run as they stand, each document from its top."""

import re

import pytest

from tokendyno.backend.paths import ROOT

pytest.importorskip("torch")


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/library.md", "README.md"])
def test_the_examples_run(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page, "exec"), names)
        assert capsys.readouterr().out.strip(), block
