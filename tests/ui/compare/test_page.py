"""The Compare page: the arms and titles that a newcomer finds, and what is shown when it is opened over a history."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gradio as gr
import msgspec
import pytest

from tests.support.ablations import stored_advice, stored_sweep
from tests.support.machines import CPU, H200, facts
from tests.support.runs import arm_records, created, ended
from tokendyno.backend import hardware
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.executors import open_bench
from tokendyno.backend.hardware import Machine
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import LOCAL_USER
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.backend.runs.store import Store
from tokendyno.ui.compare.page import FIRST, UNSUPPORTED, invitation, titles
from tokendyno.ui.compare.request import CUSTOM, preset_choices
from tokendyno.ui.page import build
from tokendyno.ui.visitor import KEY


@pytest.fixture(scope="module")
def attach(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., dict[str, Any]]]:
    """Opens Compare and Batching at an address; returns the new values by the ids of their components. The newest run
    was measured, five pairs in batches of 4."""
    history = tmp_path_factory.mktemp("opening") / "history.sqlite"
    store, first = Store(history), created("measured")
    for record in (created("alone", arms="A", at_s=1.0), *arm_records("A", 5), ended()):
        store.add("alone", record)
    work = replace(first.request.workload, prompt="Asked elsewhere", repeats=5, batch_size=4)
    first = msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, workload=work))
    for record in (first, *arm_records("A", 5), *arm_records("B", 5), ended()):
        store.add("measured", record)
    store.close()
    stored_advice(history.parent)
    stored_sweep(history.parent)
    bench = open_bench(history, None, LIMITS["local"], "subprocess")
    page = build(bench)
    handlers = [event(page, "ComparePage.attach", "live"), event(page, "BatchingPage.attach", "batch-live")]

    def ask(**query: str) -> dict[str, Any]:
        request = SimpleNamespace(query_params=query, scope={KEY: LOCAL_USER})
        updates = [handler.fn(request) for handler in handlers]
        return {part.elem_id: value for update in updates for part, value in update.items()}

    yield ask
    bench.close()


def event(page: gr.Blocks, name: str, part: str) -> Any:
    """The event with that handler which reads or updates the component with that id."""
    events = (
        event for event in page.fns.values() if getattr(inspect.unwrap(event.fn or id), "__qualname__", "") == name
    )
    return next(event for event in events if part in {known.elem_id for known in (*event.inputs, *event.outputs)})


def test_code_is_for_gpus_that_are_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "detect", lambda: CPU)
    bench = open_bench(None)
    page = build(bench)
    set_values = {"axis-a-attention": "flash_attention_2", "axis-a-dtype": "bfloat16", "prompt": "Hello"}

    def shown(more: dict[str, Any], page_of: str = "code") -> dict[str, Any]:
        check = event(page, "RunPage.check_on_change", f"{page_of}-gpu")
        values = [(set_values | more).get(part.elem_id, part.value) for part in check.inputs]
        return {part.elem_id: update for part, update in check.fn(*values).items()}

    here, there = shown({}), shown({"code-gpu": "H100-SXM", "code-gpus": 2})
    assert "FlashAttention" in here["code-a"]["value"] and not here["code-there"]
    assert "flash" in there["code-a"]["value"] and "from_pretrained" in there["code-a"]["value"]
    assert 'DEVICE = "cuda"' in there["code-all-b"]["value"]
    assert "A: would run on 2 x H100-SXM" in there["code-there"] and "nothing was measured" in there["code-there"]
    assert "cannot run" in there["verdicts-a"]  # what Run would do stays that of this machine
    assert "GPUs is 0" in shown({"code-gpu": "T4", "code-gpus": 0})["code-a"]
    batch = shown({"batch-code-gpu": "T4"}, "batch-code")
    assert "B: would run on T4" in batch["batch-code-there"] and "generate_batch" in batch["batch-code-b"]["value"]
    bench.store.close()


def test_a_page_comes_back_with_its_newest_run(attach: Callable[..., dict[str, Any]]) -> None:
    assert attach()["live"] == attach(run="measured")["live"] == "measured"


@pytest.mark.parametrize("query", [{}, {"run": "measured"}])
def test_run_means_the_same_whatever_the_run_that_is_shown_made(
    attach: Callable[..., dict[str, Any]], query: dict[str, str]
) -> None:
    shown = attach(**query)
    assert "seconds" not in shown and (shown["batch-size"], shown["prompt"]) == (4, "Asked elsewhere")


@pytest.mark.parametrize("query", [{"run": "alone"}, {"sweep": "stored-sweep"}])
def test_what_was_measured_of_one_arm_comes_back_beside_an_arm_of_another_plan(
    attach: Callable[..., dict[str, Any]], query: dict[str, str]
) -> None:
    shown, machine = attach(**query), hardware.detect()
    arms = ({axis.name: shown[f"axis-{arm}-{axis.name}"] for axis in prompt_axes()} for arm in "ab")
    a, b = (check(make_config("pocket", arm), facts(), machine, Workload(prompt="x")).plan for arm in arms)
    assert a != b


def test_advice_leaves_the_first_arms_and_their_prompt_on_compare(attach: Callable[..., dict[str, Any]]) -> None:
    updates = attach(worth="stored-advice")
    assert updates["model"] == "pocket" and not {"prompt", "preset-a", "axis-a-cache", "axis-b-cache"} & {*updates}


@pytest.mark.parametrize("query", [{"model": "gpt2"}, {"model": "gpt2", "view": "compare"}])
def test_an_address_that_names_a_model_takes_nothing_over_from_another_run(
    attach: Callable[..., dict[str, Any]], query: dict[str, str]
) -> None:
    shown = attach(**query)
    assert shown["live"] == "" and shown["model"] == "gpt2" and "prompt" not in shown


def test_an_address_shows_the_arms_that_it_names_and_says_what_it_cannot(
    attach: Callable[..., dict[str, Any]],
) -> None:
    found = attach(view="compare", model="pocket", tokens="160", batch_size="4", prompt_tokens="500")
    assert [found[name] for name in ("max-new-tokens", "batch-size", "prompt-tokens")] == [160, 4, 500]
    assert attach(run="measured", tokens="160")["max-new-tokens"] == 64, "a run has its own"
    shown = attach(view="compare", b="dtype=bfloat16,cache=static")
    assert [shown[f"axis-{key}"] for key in ("a-dtype", "b-dtype", "b-cache")] == ["auto", "bfloat16", "static"]
    assert shown["live"] == "" and "message" not in shown and "prompt" not in shown
    granted = attach(a="lowest-latency")
    assert granted["preset-a"] == "lowest-latency" and granted["axis-a-cache"] == "static"
    changed = attach(a="lowest-latency,dtype=bfloat16,kernels=off")
    assert [changed[f"axis-a-{axis}"] for axis in ("cache", "dtype", "kernels")] == ["static", "bfloat16", "off"]
    assert changed["preset-a"] == CUSTOM
    assert "Arm A: Of the preset lowest-latency, cuda_graphs=manual is left out" in changed["message"]
    for wrong, words in {
        "cach=static": "Unknown axis 'cach'. Did you mean 'cache'?",
        "cache=statik": "Unknown cache choice 'statik'. Did you mean 'static'?",
        "cache=static,lowest-latency": "An arm has one preset, which comes first",
        "page_size=64": "Arm A: page_size=64 takes many requests. Use `tokendyno batch`, or set page_size=256.",
    }.items():
        shown = attach(a=wrong, b="cache=static")
        assert shown["message"].startswith(words) and shown["axis-b-cache"] == "static" and "axis-a-cache" not in shown
    assert attach(run="measured", a="cach=static", b="cache=static") == attach(run="measured")


def test_a_link_to_a_run_that_is_gone_says_so_on_the_page_that_it_opens(
    attach: Callable[..., dict[str, Any]],
) -> None:
    said = "There is no run 'gone' here. Press Run to start one."
    for view, message in (("compare", "message"), ("batching", "batch-message")):
        assert attach(run="gone", view=view)[message] == said
    assert "batch-message" not in attach(run="gone") and "batch-message" not in attach(run="measured", view="batching")


def marked(entries: list[tuple[str, str]]) -> set[str]:
    return {name for title, name in entries if title.endswith(UNSUPPORTED)}


def test_what_runs_here_or_needs_another_choice_first_is_not_marked() -> None:
    by_axis = dict(zip((axis.name for axis in prompt_axes()), titles(facts(), CPU).choices, strict=True))
    assert not marked(by_axis["dtype"])
    assert not marked(by_axis["attention"]) & {"auto", "eager", "sdpa"}  # sdpa falls back: that is no refusal
    assert "default" not in marked(by_axis["compile"])  # with cache=static
    assert not marked(titles(facts(), CPU).presets) & {"baseline", "unwindowed", "static", "compiled"}


def test_what_is_refused_is_marked() -> None:
    huge = facts("gpt-oss-120b")
    assert "baseline" in marked(titles(huge, CPU).presets)  # no room
    assert "baseline" not in marked(titles(huge, H200).presets)
    encoder = facts("bert-base-uncased")
    assert "static" in marked(titles(encoder, CPU).presets)


@pytest.mark.parametrize("machine", [CPU, H200], ids=["cpu", "cuda"])
def test_the_first_arms_run_and_differ_and_a_sentence_says_why(machine: Machine) -> None:
    presets = FIRST["cuda" if machine.device == "cuda" else "cpu"]
    arms = [make_config("pocket", preset_choices(name, facts(), machine)) for name in presets]
    assert arms[0] != arms[1] and "The first two arms are " in invitation(facts(), machine, presets)
    assert "The first two arms" not in invitation(facts(), machine, presets[::-1])
    for arm in arms:
        assert not check(arm, facts(), machine, Workload(prompt="x")).blocked


@pytest.mark.parametrize(
    ("model", "arms"),
    [
        ("pocket", "bfloat16, as the checkpoint has it, and float32: on a CPU,"),
        ("gpt2", "bfloat16 and float32, as the checkpoint has it: on a CPU,"),
        ("bert-base-uncased", "bfloat16 and float32, as the checkpoint has it: bfloat16 takes half"),
    ],
)
def test_what_is_said_before_a_run_is_true_of_the_model(model: str, arms: str) -> None:
    said, encoder = invitation(facts(model), CPU, FIRST["cpu"]), model == "bert-base-uncased"
    assert f"The first two arms are {arms}" in said
    assert ("Texts, speed, memory and KV cache" in said, "forward passes over your prompt" in said) == (
        not encoder,
        encoder,
    )
    assert "arms are" not in invitation(facts("bert-base-uncased"), H200, FIRST["cuda"]), "it launches no tokens"
