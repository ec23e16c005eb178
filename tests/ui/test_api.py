"""The endpoints for programs: typed, in the documents' words, under the limits and owners of the page."""

import dataclasses
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from tests.support.event_loops import finished
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.optimizations import all_axes
from tokendyno.ui.api import Api, endpoints
from tokendyno.ui.visitor import KEY


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """Of a public page. It is not started: what is queued waits."""
    made = open_bench(None, limits=LIMITS["public"])
    yield made
    made.close()


@pytest.fixture
def api(bench: Bench) -> Api:
    return Api(bench)


def request_of(owner: str) -> gr.Request:
    request = gr.Request()
    request.request = SimpleNamespace(scope={KEY: Visitor(owner)})  # type: ignore[assignment]
    return request


def said(call: Any) -> str:
    """The sentence with which a call is refused."""
    with pytest.raises(gr.Error) as refused:
        finished(call)
    assert "Traceback" not in str(refused.value)
    return str(refused.value)


def test_every_endpoint_is_public_under_its_own_name_and_typed(bench: Bench) -> None:
    with gr.Blocks() as demo:
        endpoints(bench)
    visibility = {one["api_name"]: one["api_visibility"] for one in demo.config["dependencies"]}
    assert visibility == dict.fromkeys(("check", "run", "status", "result", "stop", "fit"), "public")
    described = demo.get_api_info()["named_endpoints"]
    types = {one["parameter_name"]: one["type"] for one in described["/run"]["parameters"]}
    assert types["max_new_tokens"] == {"type": "integer"} and types["ignore_eos"] == {"type": "boolean"}
    fields = {field.name for field in dataclasses.fields(Workload)}
    for name in ("check", "run"):
        said = described[f"/{name}"]["description"]
        assert "cache=static,compile=default" in said and "lowest-latency" in said
        assert all(f"{axis.name}=" in said and axis.choices[-1].name in said for axis in all_axes())
    assert set(types) == {"model", "a", "b", "reasoning"} | fields - {"reasoning_effort"}, "all that `compare` takes"


def test_check_and_fit_answer_in_the_documents_of_the_command_line(api: Api) -> None:
    checked = finished(api.check(arm="cache=static", prompt="x"))
    assert checked["kind"] == "check" and checked["runnable"] and checked["planned"]["cache"] == "static"
    assert not finished(api.check(arm="loop=own", prompt="x"))["runnable"]
    fitting = finished(api.fit(model="pocket", gpu="RTX-4090", context=512))
    assert fitting["kind"] == "fit" and fitting["context"] == 512 and fitting["best"]
    assert "0" in said(api.fit(model="pocket", gpu="RTX-4090", batch=0)), "not taken for 1"


def test_a_run_is_queued_for_its_owner_who_alone_stops_it(api: Api) -> None:
    sampled: dict[str, Any] = {"temperature": 0.8, "top_k": 5, "top_p": 0.9}
    run = finished(api.run(request_of("ada"), a="cache=static", max_new_tokens=4, **sampled))
    status = finished(api.status(run))
    assert status["status"] == "queued" and status["queue"]["ahead"] == 0 and status["tokens"] == {"A": 0}
    document = finished(api.result(run, 0.2))
    assert document["arms"][0]["requested"]["cache"] == "static"
    assert sampled.items() <= document["workload"].items()
    assert "another visitor started it" in said(api.stop(request_of("bob"), run))
    assert finished(api.status(run))["status"] == "queued"
    assert finished(api.stop(request_of("ada"), run))
    assert finished(api.result(run, 60.0))["status"] == "cancelled"


def test_two_arms_run_in_as_many_pairs_as_the_mode_allows(api: Api, bench: Bench) -> None:
    run = bench.runs.get(finished(api.run(request_of("eve"), a="", b="dtype=float32", max_new_tokens=4)))
    assert run is not None and run.request.until_s and run.request.workload.repeats == bench.limits.repeats
    assert finished(api.stop(request_of("eve"), run.id))


BAD = [
    ({"a": "cach=static"}, "Did you mean 'cache'?"),
    ({"max_new_tokens": "many"}, "max_new_tokens is 'many'. Enter a number."),
    ({"max_new_tokens": 5_000}, "1,024"),
    ({"model": "/etc"}, "/etc"),
    ({"prompt": "x" * 20_000}, "16"),
    ({"a": "loop=own"}, "cache=static"),
    ({"reasoning": "high"}, "chat"),
]


@pytest.mark.parametrize(("values", "sentence"), BAD, ids=str)
def test_bad_input_is_one_sentence_and_nothing_is_queued(
    api: Api, bench: Bench, values: dict[str, Any], sentence: str
) -> None:
    newest = bench.runs.newest("ada")
    assert sentence in said(api.run(request_of("ada"), **values))
    assert bench.runs.newest("ada") == newest


def test_an_unknown_run_and_an_event_that_came_past_the_gate(api: Api) -> None:
    for call in (api.status("0" * 24), api.result("../x"), api.stop(request_of("ada"), "")):
        assert "There is no run of that id" in said(call)
    assert "Something went wrong" in said(api.run(gr.Request(), a=""))
