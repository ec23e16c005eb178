"""The exported script is valid Python whatever a user typed, and generates the worker's tokens."""

import ast
import json
import runpy
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.cli.main import main
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.export.script import script
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts, resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import DYNAMIC
from tokendyno.backend.script.source import WIDTH

RUFF = ["--isolated", "--no-cache", f"--line-length={WIDTH}"]
BOTH = (CPU, H200)
HUB = ModelSource("hub", repo="org/name")
SOURCES = {
    "embedded": facts().source,
    "folder": ModelSource("folder", path="/models/my model"),
    "hub": HUB,
    "revision": ModelSource("hub", repo="org/name", revision="refs/pr/1"),
    "gguf": ModelSource("gguf", path="/models/small.Q4.gguf"),
}
PROMPTS = [
    "Once upon a time",
    'a "quoted" word',
    'it\'s "both" \'kinds\' "of" quotes',
    '"""\nimport os\nos.abort()\n"""',
    "\\\" + exec('1') + \\\"",
    "line\nend\r\nand \x85 \u2028 \x00 \x1b[31m",
    "\u202e reversed \u2066",
    "ein Bär 🐻",
    "\\",
    "# -*- coding: utf-7 -*-",
]


def exported(
    given: ModelFacts | None = None, arm: str = "", machine: Machine = CPU, paths: bool = True, **work: Any
) -> str:
    """The script of an arm of a model on a machine."""
    model = given or facts()
    defaults: dict[str, Any] = {"prompt": "Once", "max_new_tokens": 8}
    workload = Workload(**defaults | work)
    return script(check(parse_arm("m", arm), model, machine, workload), model, workload, paths)


def assigned(text: str, name: str) -> Any:
    """The literal that the script gives to a name."""
    values = [
        node.value
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
    ]
    return ast.literal_eval(values[0])


@pytest.mark.parametrize("machine", [CPU, H200], ids=["cpu", "h200"])
@pytest.mark.parametrize("arm", ["", "cache=static", "dtype=float32,cache=static,compile=default"])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_is_loaded_from_where_it_is(source: str, arm: str, machine: Machine) -> None:
    text = exported(replace(facts(), source=SOURCES[source]), arm, machine)
    compile(text, "script.py", "exec")
    match SOURCES[source]:
        case ModelSource(kind="hub", repo=repo, revision=revision):
            assert assigned(text, "MODEL") == repo
            assert text.count(f'revision="{revision}"') == (2 if revision else 0)
        case ModelSource(kind="gguf"):
            assert assigned(text, "MODEL") == "/models"
            assert text.count('gguf_file="small.Q4.gguf"') == 2
        case ModelSource(path=path):
            assert assigned(text, "MODEL") == path
    assert ("device_map=DEVICE" in text) == (machine is H200)
    assert ("torch.cuda.synchronize()" in text) == (machine is H200)
    assert assigned(text, "DEVICE") == machine.device


@pytest.mark.parametrize("name", ["random:gpt2", "random:Gemma-3-1b", "random:gpt-oss-20b", "random:Mistral-7B-v0.1"])
def test_random_weights_bring_their_architecture_along(name: str) -> None:
    text = exported(facts(name), machine=H200)
    compile(text, "script.py", "exec")
    assert assigned(text, "CONFIG") == json.loads(facts(name).source.config_json)
    assert "from_pretrained" not in text and "AutoTokenizer" not in text


def test_an_encoder_is_timed_pass_by_pass() -> None:
    text = exported(facts("bert-base-uncased"), max_new_tokens=20)
    compile(text, "script.py", "exec")
    assert assigned(text, "PASSES") == 20
    assert "AutoModel.from_pretrained" in text and "generate" not in text


@pytest.mark.parametrize(("model", "windowed"), [("random:Llama-3-8B", False), ("random:Gemma-3-1b", True)])
def test_a_captured_prompt_is_the_runs_and_not_one_that_reaches_a_window(model: str, windowed: bool) -> None:
    arm = "cache=static,loop=own,cuda_graphs=manual,prefill=captured"
    text = exported(facts(model), arm, machine=H200)
    compile(text, "script.py", "exec")
    assert "cuda_graph=True, prefill_graphs=True)" in text and "class CapturedPasses:" in text
    assert ("replay=given is inputs" in text) is windowed
    assert "prefill_graphs=True" not in exported(facts(model), arm.partition(",prefill")[0], machine=H200)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_stays_a_string_and_changes_nothing_else(prompt: str) -> None:
    text, reference = exported(prompt=prompt), exported(prompt="x")
    assert assigned(text, "PROMPT") == prompt
    assert text.isascii() or all(c.isprintable() or c == "\n" for c in text)
    assert [line for line in text.split("\n") if not line.startswith("PROMPT = ")] == [
        line for line in reference.split("\n") if not line.startswith("PROMPT = ")
    ]


@pytest.mark.parametrize("name", PROMPTS)
def test_a_name_of_a_model_stays_a_comment_and_a_string(name: str) -> None:
    given = replace(facts(), label=name, source=ModelSource("folder", path=f"/models/{name}"))
    text = exported(given)
    assert assigned(text, "MODEL") == str(Path(f"/models/{name}"))
    reference = exported(replace(facts(), label="x", source=ModelSource("folder", path="/models/x")))
    shape = [type(node) for node in ast.walk(ast.parse(reference))]
    assert [type(node) for node in ast.walk(ast.parse(text))] == shape
    assert all("coding" not in line for line in text.split("\n")[:2])


FAST = "cache=static,loop=own,attention=eager,projections=fused,kernels=local"
PRINTED = [
    *(
        ("dtype=float32,attention=eager", machine, name)
        for name in ("pocket", "random:gpt-oss-20b")
        for machine in BOTH
    ),
    *(("", machine, "bert-base-uncased") for machine in BOTH),
    (f"{FAST},cuda_graphs=manual", H200, "random:Llama-3-8B"),
    (f"{FAST},quantization=torchao-int4,compile=default", H200, "random:Qwen3-0.6B"),
    ("cache=quantized-quanto4,quantization=quanto-int4,shapes=exact", CPU, "random:Llama-3-8B"),
    ("cache=static,loop=own,quantization=mxfp4-dequantized,shapes=buckets,experts=grouped_mm", CPU, "random:pocket"),
]


@pytest.mark.skipif(shutil.which("ruff") is None, reason="ruff is not installed")
@pytest.mark.parametrize(("arm", "machine", "name"), PRINTED)
def test_a_script_is_formatted_and_uses_all_that_it_imports(
    arm: str, machine: Machine, name: str, tmp_path: Path
) -> None:
    """Each definition of several axes once, every name defined."""
    sampled: dict[str, Any] = {"temperature": 0.5, "prompt_tokens": 64} if machine is H200 or "random:" in name else {}
    (tmp_path / "arm.py").write_text(exported(facts(name), arm, machine, batch_size=2, **sampled))
    for command in (["format", "--check"], ["check", "--select", "E,F,I"]):
        ran = subprocess.run(["ruff", *command, *RUFF, str(tmp_path)], capture_output=True)
        assert ran.returncode == 0, ran.stdout.decode() + (tmp_path / "arm.py").read_text()


def test_a_fallback_is_printed_as_it_runs_and_explained() -> None:
    text = exported(arm="attention=sdpa")
    assert "# attention=sdpa falls back to eager: PyTorch's scaled_dot_product_attention does not support" in text
    assert "sdpa" not in "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    assert "falls back" not in exported(arm="attention=eager")


def test_without_paths_no_folder_of_the_machine_is_named() -> None:
    assert assigned(exported(paths=False), "MODEL") == "pocket"
    gguf = replace(facts(), source=SOURCES["gguf"])
    assert assigned(exported(gguf, paths=False), "MODEL") == "models"


def test_the_workload_is_printed() -> None:
    text = exported(temperature=0.7, seed=5, top_k=40, top_p=0.9, batch_size=3, prompt_tokens=100)
    for part in ("temperature=0.7", "top_k=40", "top_p=0.9", "torch.manual_seed(5)", "BATCH_SIZE = 3", "[:100]"):
        assert part in text
    assert "manual_seed" not in exported()
    assert assigned(exported(prompt="", prompt_tokens=7), "PROMPT").startswith("The quick brown fox")
    switched = exported(chat=True, reasoning_effort="off", system="Be concise.")
    assert 'SYSTEM = "Be concise."' in switched and "enable_thinking=False" in switched
    assert 'messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]' in switched
    deepseek = replace(facts(), template_parts=True, template_variables=("thinking",))
    parts = exported(deepseek, chat=True, reasoning_effort="on")
    assert 'messages = [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]' in parts
    assert "thinking=True" in parts and "enable_thinking" not in parts
    chat = exported(chat=True, reasoning_effort="low")
    assert "SYSTEM" not in chat
    assert "apply_chat_template" in chat and 'reasoning_effort="low"' in chat
    assert "only EOS and padding are kept" in exported() and "EOS is ignored" in exported(ignore_eos=True)


# --- the command ----------------------------------------------------------------------------------


def test_export_prints_a_script_or_writes_it_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--standalone", "--arm", "static", "--prompt", "Hi"]) == 0
    printed = capsys.readouterr().out
    assert assigned(printed, "PROMPT") == "Hi" and "cache=static" in printed
    (tmp_path / "arm.py").write_text("old")
    assert main(["export", "--standalone", "--arm", "static", "--prompt", "Hi", "-o", str(tmp_path / "arm.py")]) == 0
    assert capsys.readouterr().out == ""
    assert (tmp_path / "arm.py").read_text() == printed
    assert [path.name for path in tmp_path.iterdir()] == ["arm.py"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--arm", "loop=own"], "Set cache=static."),
        (["-o", "/nowhere/at/all.py"], "Name another with --output."),
        (["--repeats", "3"], "unrecognized arguments: --repeats 3"),
    ],
)
def test_export_refuses_in_one_sentence(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", *arguments]) == 2
    said = capsys.readouterr()
    assert says in said.err and said.err.count("\n") == 1 and said.out == ""


def test_a_refused_export_leaves_the_old_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "arm.py").write_text("old")
    assert main(["export", "--arm", "loop=own", "-o", str(tmp_path / "arm.py")]) == 2
    assert (tmp_path / "arm.py").read_text() == "old"


@pytest.mark.parametrize(
    ("arm", "new"), [pytest.param("", 140, marks=pytest.mark.full), ("cache=static,compile=default", 24)]
)
def test_a_script_warms_up_as_a_run_does(arm: str, new: int) -> None:
    """The same prompts and as many new tokens, past the sliding window of 128 tokens where the run gets there."""
    import torch

    from tokendyno.backend.worker.prompt import Prompt
    from tokendyno.backend.worker.runners.decode import WarmUp, past_window

    names: dict[str, Any] = {}
    text = exported(arm=arm, max_new_tokens=new, ignore_eos=True)
    exec(text[: text.index("with torch.inference_mode()")], names)
    scripts = [(given["input_ids"].shape[1], tokens) for given, tokens in names["warm_up"]]

    runs: list[tuple[int, int]] = []
    prompt = Prompt(names["input_ids"], torch.ones_like(names["input_ids"]))
    length = prompt.tokens + new
    past = past_window(prompt, 128, length, DYNAMIC)
    warm_up = WarmUp(lambda read, tokens: runs.append((read.tokens, tokens)), prompt, past, 128, length)
    if "compile" in arm:
        warm_up.compile(lambda share: None, lambda: False)
    warm_up.perform(lambda share: None, lambda: False)
    assert scripts == runs
    assert (max(tokens for tokens, _ in scripts) > 100) is (new == 140)


# --- the same tokens as the worker ----------------------------------------------------------------

WORK: dict[str, Any] = {"prompt": "Once upon a time", "max_new_tokens": 16, "batch_size": 2}


@pytest.mark.slow
def test_a_script_generates_the_workers_tokens(
    warm_bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Greedy by generate, and sampled by the custom loop; batches of two."""
    sampled = {"temperature": 1.5, "seed": 3, "ignore_eos": True}
    arms: tuple[tuple[str, dict[str, Any]], ...]
    arms = (("cache=unwindowed", {}), ("cache=static,loop=own", sampled))
    for choices, sampling in arms:
        arm, work = f"dtype=float32,{choices}", WORK | sampling
        requests = [ArmRequest("A", dict(parse_arm("pocket", arm).choices))]
        run = warm_bench.wait(warm_bench.submit(Request("pocket", requests, Workload(**work))), 120)
        assert run.status == "done", run.message
        path = tmp_path / "script.py"
        path.write_text(exported(arm=arm, **work))
        made = runpy.run_path(str(path))
        assert made["new_ids"] == run.arms["A"].ids
        assert len(set(made["new_ids"])) > 5
        said = capsys.readouterr().out
        assert run.arms["A"].text.strip() in said
        assert all(word in said for word in ("time to first token: ", "median latency: ", "decode speed: "))


ENCODERS = [
    "shapes=buckets",
    "quantization=quanto-int8",  # runs outside inference mode, which quanto's tensors refuse
    pytest.param("compile=default", marks=pytest.mark.full),
    pytest.param("quantization=quanto-int4", marks=pytest.mark.full),  # quanto builds its C++ helper: a minute
    *(
        pytest.param(arm, marks=pytest.mark.slow)
        for arm in ("quantization=torchao-int8", "attention=eager,projections=fused,kernels=local")
    ),
]


@pytest.mark.parametrize("arm", ENCODERS)
def test_the_script_of_an_encoder_runs(arm: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bert = {
        "model_type": "bert",
        "hidden_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 300,
        "max_position_embeddings": 128,
    }
    (tmp_path / "config.json").write_text(json.dumps(bert))
    model = resolve(f"random:{tmp_path}")
    (tmp_path / "script.py").write_text(exported(model, arm, max_new_tokens=3, batch_size=2, prompt="x" * 60))
    made = runpy.run_path(str(tmp_path / "script.py"))
    assert made["output"].last_hidden_state.shape == (2, 64 if "buckets" in arm else 60, 64)
    assert len(made["latencies_s"]) == 3
    assert "ms per pass" in capsys.readouterr().out


def test_a_script_of_ranks_says_how_it_is_started_on_one_machine_and_on_two() -> None:
    head = exported(arm="parallel=tensor-2").partition("\nimport")[0]
    assert "torchrun --standalone --nproc-per-node 2" in head
    assert "torchrun --nnodes 2 --nproc-per-node 1 --rdzv-backend c10d --rdzv-endpoint HOST:PORT" in head
    assert "torchrun" not in exported()
