"""The web process imports neither torch nor transformers."""

import subprocess
import sys
from pathlib import Path

from tokendyno.backend.paths import ROOT

CHECK = """
import sys
{code}
print(sorted(name for name in sys.modules if name.partition(".")[0] in {heavy!r}))
"""
HEAVY = ("torch", "transformers", "tokenizers", "bitsandbytes", "accelerate", "kernels")


def loaded(code: str, heavy: tuple[str, ...] = HEAVY, tmp_path: Path | None = None) -> str:
    """Heavy modules that a fresh process has imported after `code`."""
    ran = subprocess.run(
        [sys.executable, "-c", CHECK.format(code=code, heavy=heavy)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip().splitlines()[-1]


def modules_outside_the_worker() -> list[str]:
    files = [*ROOT.glob("backend/**/*.py"), *ROOT.glob("ui/**/*.py"), ROOT / "app.py"]
    names = [".".join(("tokendyno", *file.relative_to(ROOT).with_suffix("").parts)) for file in files]
    return [
        n.removesuffix(".__init__")
        for n in names
        if ".worker." not in n and ".counter." not in n and not n.endswith("__main__")
    ]


def test_no_module_outside_the_worker_imports_torch_nor_does_the_page_that_is_built() -> None:
    names = modules_outside_the_worker()
    assert {
        "tokendyno.app",
        "tokendyno.backend.cli.main",
        "tokendyno.backend.engine.bench",
        "tokendyno.backend.optimizations.axes.attention",
        "tokendyno.ui.page",
    } <= set(names)
    assert "tokendyno.backend.worker.runners.decode" not in names
    build = "bench = open_bench(None, None); page = build(bench); assert page.blocks; bench.close()"
    code = f"from tokendyno.backend.executors import open_bench; from tokendyno.ui.page import build; {build}"
    assert loaded(f"import {', '.join(names)}\n{code}") == "[]"


def test_the_command_line_needs_no_gradio() -> None:
    code = "from tokendyno.backend.cli.main import main; main(['doctor']); main(['models']); main(['check'])"
    assert loaded(code, (*HEAVY, "gradio", "plotly", "pandas")) == "[]"
