"""The interface for programs: typed endpoints that `gradio_client` calls by name, under the page's owners and limits.

Arms are written as on the command line, documents are those of docs/json.md.
"""

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import gradio as gr
import msgspec
from gradio.events import api as api_event

from tokendyno.backend import hardware
from tokendyno.backend.arms.bundles import written_arm
from tokendyno.backend.arms.presets import arm_presets, prompts
from tokendyno.backend.config import MOST_PAIRS, UNTIL_S, Request, Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.device import device_of
from tokendyno.backend.fit.table import fit_facts
from tokendyno.backend.fit.view import answer_view
from tokendyno.backend.models import DEFAULT_MODEL, download_bytes
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.redact import redact
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.check_document import check_document
from tokendyno.backend.views.document import document_of
from tokendyno.ui.compare.request import within
from tokendyno.ui.components.inputs import read_number, read_text, read_whole
from tokendyno.ui.errors import UNEXPECTED, log_unexpected
from tokendyno.ui.visitor import REFUSED, visitor_of

if TYPE_CHECKING:
    from gradio.mcp import GradioMCPServer

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("tokendyno.api")

MAX_WAIT_S = 60.0
LOOK_EVERY_S = 0.1
NO_RUN = "There is no run of that id. Use the id that the endpoint run returned."


def sentences(endpoint: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorator: an InputError reaches the caller as its sentence, any other error as a general one."""

    @functools.wraps(endpoint)
    async def safe(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await endpoint(*args, **kwargs)
        except InputError as error:
            raise gr.Error(redact(str(error)), print_exception=False) from None
        except Exception:
            log_unexpected(log, "an endpoint failed")
            raise gr.Error(UNEXPECTED, print_exception=False) from None

    return safe


def endpoints(bench: Bench, queued: bool = True) -> None:
    """Add the endpoints to the current Blocks; `queued`: through Gradio's queue, which MCP calls cannot take."""
    api = Api(bench)
    for endpoint in (api.check, api.run, api.status, api.result, api.stop, api.fit):
        description = " ".join((endpoint.__doc__ or "").split())
        if endpoint in (api.check, api.run):
            description = f"{description} {how_arms_are_written()}"
        api_event(
            endpoint, api_name=endpoint.__name__, api_description=description, concurrency_limit=None, queue=queued
        )


def how_arms_are_written() -> str:
    """What a program, or a model that uses these as tools, needs to know to write an arm."""
    axes = "; ".join(f"{axis.name}={'|'.join(choice.name for choice in axis.choices)}" for axis in all_axes())
    presets = ", ".join(preset.name for preset in arm_presets())
    return (
        "An arm is written axis=choice,axis=choice, such as cache=static,compile=default; what is not named stays at "
        f"its default, and an empty text is all defaults. Axes and choices: {axes}. A preset's name is an arm too: "
        f"{presets}."
    )


def answer_json(server: "GradioMCPServer") -> None:
    """Let the tools answer JSON: Gradio would write a dict as Python does, which other languages cannot read."""
    postprocess = server.postprocess_output_data

    def postprocess_json(data: Any, root_url: str) -> Any:
        texts = [value if isinstance(value, str) else msgspec.json.encode(value).decode() for value in data]
        return postprocess(texts, root_url)

    server.postprocess_output_data = postprocess_json  # type: ignore[method-assign]


class Api:
    """The endpoints. What takes longer than a moment runs in a thread: the server's loop also serves the page."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    @sentences
    async def check(
        self,
        model: str = DEFAULT_MODEL,
        arm: str = "",
        prompt: str = "",
        prompt_tokens: int = 0,
        max_new_tokens: int = 256,
        batch_size: int = 1,
    ) -> dict[str, Any]:
        """Whether an arm would run here, what is planned for it, and its predicted memory."""
        work = _workload(
            prompt=prompt, prompt_tokens=prompt_tokens, max_new_tokens=max_new_tokens, batch_size=batch_size
        )

        def check_arm() -> dict[str, Any]:
            request = self._request(model, {"A": arm}, work)
            facts = self._bench.facts(request.model)
            obstacle = self._bench.obstacle(facts)
            checked = self._bench.check(request)["A"].refused(obstacle)
            size = 0 if obstacle else download_bytes(facts.source)
            return _as_dict(check_document(request, facts, checked, self._bench.machine(), size))

        return await asyncio.to_thread(check_arm)

    @sentences
    async def run(
        self,
        request: gr.Request,
        model: str = DEFAULT_MODEL,
        a: str = "",
        b: str | None = None,
        prompt: str = "",
        prompt_tokens: int = 0,
        max_new_tokens: int = 256,
        batch_size: int = 1,
        temperature: float = 0.0,
        seed: int = 0,
        repeats: int = 0,
        ignore_eos: bool = False,
        chat: bool = False,
        system: str = "",
        reasoning: str = "",
        top_k: int = 0,
        top_p: float = 1.0,
    ) -> str:
        """Queue a run of arm `a`, or of `a` and `b`, and return its id. `repeats` 0: one run of `a`, or pairs until
        they decide."""
        work = _workload(
            prompt=prompt,
            prompt_tokens=prompt_tokens,
            max_new_tokens=max_new_tokens,
            batch_size=batch_size,
            temperature=temperature,
            seed=seed,
            repeats=repeats or (1 if b is None else MOST_PAIRS),
            ignore_eos=ignore_eos,
            chat=chat,
            system=system,
            reasoning_effort=reasoning,
            top_k=top_k,
            top_p=top_p,
        )
        until_s = 0.0 if repeats or b is None else UNTIL_S
        arms = {"A": a} if b is None else {"A": a, "B": b}
        visitor = visitor_of(request)

        def submit() -> str:
            run_request = msgspec.structs.replace(self._request(model, arms, work), until_s=until_s)
            return self._bench.submit(within(run_request, self._bench.limits) if until_s else run_request, visitor)

        return await asyncio.to_thread(submit)

    @sentences
    async def status(self, run: str) -> dict[str, Any]:
        """How far a run has come: `status`, `message`, `queue` (null once it has begun) and `tokens` of each arm."""
        found_run = await self._find(run)
        place = self._bench.place(found_run.id)
        return {
            "run": found_run.id,
            "status": found_run.status,
            "message": found_run.message,
            "ended": found_run.ended,
            "queue": {"ahead": place.ahead, "wait_s": place.wait_s} if place else None,
            "tokens": {name: len(arm.t_s) for name, arm in found_run.arms.items()},
        }

    @sentences
    async def result(self, run: str, wait_s: float = 0.0) -> dict[str, Any]:
        """The document of a run as it is after at most `wait_s` seconds (60 at most), or as soon as it has ended."""
        found_run = await self._find(run)
        wait_s = read_number("wait_s", wait_s)
        deadline_s = time.monotonic() + min(max(wait_s, 0.0), MAX_WAIT_S)
        while not found_run.ended and time.monotonic() < deadline_s:
            await asyncio.sleep(LOOK_EVERY_S)
        return await asyncio.to_thread(lambda: _as_dict(document_of(found_run, self._bench.runs.reading)))

    @sentences
    async def stop(self, request: gr.Request, run: str) -> bool:
        """Stop a run of one's own."""
        found_run, visitor = await self._find(run), visitor_of(request)
        if not await asyncio.to_thread(self._bench.cancel, found_run.id, visitor):
            raise InputError(REFUSED)
        return True

    @sentences
    async def fit(
        self,
        model: str = DEFAULT_MODEL,
        gpu: str | None = None,
        vram: str | None = None,
        context: int | None = None,
        batch: int = 1,
        gpus: int = 1,
    ) -> dict[str, Any]:
        """The smallest arrangement that fits on a GPU, and all quantizations and caches: a GPU of the catalogue, one of
        that size, or this machine."""
        tokens = None if context is None else read_whole("context", context)
        sequences, count = read_whole("batch", batch), read_whole("gpus", gpus)

        def fit_table() -> dict[str, Any]:
            facts = self._bench.facts(read_text("model", model).strip())
            names = [None if name is None else read_text(what, name) for what, name in (("gpu", gpu), ("vram", vram))]
            table = fit_facts(facts, device_of(hardware.detect(), *names), tokens, sequences, count)
            return dict(msgspec.to_builtins(table.as_json() | {"answer": answer_view(table)}))

        return await asyncio.to_thread(fit_table)

    def _request(self, model: object, arms: dict[str, str], work: Workload) -> Request:
        name = read_text("model", model).strip()
        requested = [
            written_arm(arm, read_text(f"arm {arm}", text), name, work, lambda: self._bench.facts(name))
            for arm, text in arms.items()
        ]
        return Request(name, requested, work)

    async def _find(self, run_id: object) -> Run:
        """A run by its id; one that is no longer in memory is read from the disk."""
        run = await asyncio.to_thread(self._bench.runs.get, read_text("run", run_id))
        if run is None:
            raise InputError(NO_RUN)
        return run


_READERS: dict[str, Callable[[str, object], Any]] = {
    **dict.fromkeys(("prompt_tokens", "max_new_tokens", "batch_size", "seed", "repeats", "top_k"), read_whole),
    **dict.fromkeys(("temperature", "top_p"), read_number),
    **dict.fromkeys(("prompt", "system", "reasoning_effort"), read_text),
    **dict.fromkeys(("ignore_eos", "chat"), lambda name, value: value is True),
}


def _workload(**values: object) -> Workload:
    """What is to be generated. Without a prompt and a length the first of presets/prompts.toml, as everywhere."""
    fields = {name: _READERS[name](name, value) for name, value in values.items()}
    if not fields["prompt"] and not fields["prompt_tokens"]:
        fields["prompt"] = prompts()[0].text
    return Workload(**fields)


def _as_dict(document: msgspec.Struct) -> dict[str, Any]:
    return dict(msgspec.to_builtins(document))
