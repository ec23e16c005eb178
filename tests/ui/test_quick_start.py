"""What starting the page leaves out: Gradio's stubs, and the collection of what stays anyway."""

import subprocess
import sys

from tokendyno.backend.paths import ROOT

CODE = """
import ast, gc, inspect, sys
from tokendyno.ui.quick_start import quick_start

parse, parsed = ast.parse, []
def counted(*arguments, **options):
    parsed.append(sys._getframe(1).f_globals["__name__"])
    return parse(*arguments, **options)
ast.parse = counted

getfile = inspect.getfile
with quick_start():
    import gradio as gr
    assert not gc.isenabled()
    assert inspect.getfile(gr.Blocks).endswith("blocks.py"), "everybody else is told the file"
print(parsed.count("gradio.component_meta"), inspect.getfile is getfile, gc.isenabled(), gc.get_freeze_count() > 10_000)
with gr.Blocks():
    print(callable(gr.Button().click))
"""


def test_gradio_writes_no_stubs_and_all_is_as_before_afterwards() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["0 True True True", "True"], done.stderr
