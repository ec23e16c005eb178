"""`td.load`: a model in this process as an arm runs it."""

import os
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from msgspec import structs

from tokendyno.backend.arms.bundles import written_arm
from tokendyno.backend.cli.progress import say, shown_until
from tokendyno.backend.config import (
    MAX_NEW_TOKENS,
    ArmRequest,
    Request,
    Workload,
    check_range,
    check_text,
    workload_of,
)
from tokendyno.backend.engine.prediction import predict
from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.evidence import Evidence, Finding
from tokendyno.backend.executors import open_bench
from tokendyno.backend.executors.in_process_model import InProcessModel
from tokendyno.backend.hardware import Machine
from tokendyno.backend.library.results import Arm, RunResult, arm_text
from tokendyno.backend.library.tokens import Generated, TokenStream
from tokendyno.backend.messages import Generate, Started
from tokendyno.backend.models import resolve
from tokendyno.backend.predict.lengths import cache_places
from tokendyno.backend.runs.row import choices_text
from tokendyno.backend.traffic import Traffic, TrafficRequest
from tokendyno.backend.views.document import document
from tokendyno.backend.views.ledger import LedgerRow, prompt_rows

USUAL_LENGTH = 512
"""Tokens of prompt and text for which an arm is checked, where nothing else is said."""
MOST_LOGPROBS = 20
USUAL_AT_ONCE = 16
"""Texts at once of batching=continuous with batch_size=auto."""

Prompt = str | Sequence[int] | Sequence[Mapping[str, Any]] | Any
"""A text to continue; token ids (a list, or a tensor of one row); or messages, which a chat template renders."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The least seconds that a token takes here, as far as memory and arithmetic limit it; None where this machine's
    bandwidth is not known (`tokendyno doctor --bandwidth` measures it). `note`: by which rates; `work`: of what."""

    seconds: float | None
    note: str
    work: str


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes: of the weights as loaded, as predicted by part for `max_length` tokens, and free on the device before."""

    weight_bytes: int
    predicted_bytes: dict[str, int]
    free_bytes: int


def load(
    model: str | os.PathLike[str],
    arm: Arm = "",
    *,
    max_length: int | None = None,
    models_dir: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> "Model":
    """Load a model into this process, to be run as `arm` says: loop, captured steps, kernels, packed weights, caches.

    model       catalogue name, Hub id[@revision], folder, .gguf file or random:NAME
    arm         a preset such as "lowest-latency", or choices such as "cache=static,loop=own"
    max_length  tokens of the longest prompt with its text: a static cache is made as long at once. Without it such a
                cache is as long as the first text needs, and grows, which compiles and captures the step anew
    Raises InputError where the arm cannot run here, with the reason and what to do, and RunFailed where loading breaks.
    """
    if not isinstance(model, str | os.PathLike):
        raise InputError(f"model is {shown(model)}; it must be a name or a path.")
    model, folder = os.fspath(model), Path(models_dir) if models_dir is not None else None
    positions = resolve(model, folder).max_positions
    length = max_length if max_length is not None else min(USUAL_LENGTH, positions or USUAL_LENGTH)
    check_range("max_length", length, 2, positions or None)
    new = min(length - length // 2, MAX_NEW_TOKENS)
    work = Workload(prompt_tokens=length - new, max_new_tokens=new)
    arm_request = written_arm("A", arm_text(arm), model, work, lambda: resolve(model, folder))
    choices, request = arm_request.choices, Request(model, [arm_request], work)
    if choices.get("batching") == "continuous":  # with pages for as many of the longest texts as it takes at once
        rows = choices.get("batch_size", "auto")
        at_once = USUAL_AT_ONCE if rows == "auto" else int(rows)
        traffic = Traffic([TrafficRequest(0.0, work.max_new_tokens, work.prompt_tokens)] * at_once, at_once)
        request = Request(model, [arm_request], workload_of(traffic), traffic)
    bench = open_bench(None, folder, executor="in-process")
    try:
        facts, arms = bench.admitted(request)
        machine, checked = bench.machine(), arms["A"]
        inner = InProcessModel(bench.created(request, facts, arms, ""), checked, facts, machine)
    finally:
        bench.close()
    if progress:
        for verdict in checked.verdicts:
            if verdict.level != "ok":
                say(f"{verdict.level} ({verdict.axis}): {verdict.reason}")
        if checked.planned["compile"] != "off":
            again = "" if max_length else ", and so does a longer one, unless max_length says how long texts get"
            say(f"note (compile): The first text compiles, for a minute or so{again}.")
    loading = inner.load()
    if progress:
        shown_until(lambda: inner.run, loading.done)
    loading.result()
    return Model(inner, arm_request, machine, max_length or 0)


def _check_among_others(inner: InProcessModel, length: int, logprobs: int | None, seed: int | None) -> None:
    """InputError for what continuous batching cannot do for one text of several."""
    if logprobs is not None:
        raise InputError("logprobs are not told with batching=continuous. Leave them out, or set batching=off.")
    if seed is not None:
        raise InputError(
            f"seed is {seed}, but texts of batching=continuous share one generator. Use None, or batching=off."
        )
    work = inner.created.request.workload
    limit = work.prompt_tokens + work.max_new_tokens
    if length > limit:
        raise InputError(
            f"Prompt and new tokens are {length:,} together, but a text has pages for {limit:,}. Raise max_length."
        )


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message with its content as one text, also where it came in parts ({"text": ...}). InputError for others."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    texts: list[Any] = [part.get("text") if isinstance(part, Mapping) else None for part in parts]
    if not all(isinstance(text, str) for text in (message.get("role"), *texts)):
        raise InputError('A message is {"role": ..., "content": ...}, and both are texts.')
    return {**message, "content": "\n".join(texts)}


class Model:
    """A model as an arm runs it. Any thread may use it: a call waits for earlier ones, of all models of this process.
    With batching=continuous its own texts run beside each other. A context manager, which closes it at the end.

    tokenizer  that of transformers; its chat template is the model's
    """

    def __init__(self, inner: InProcessModel, arm: ArmRequest, machine: Machine, max_length: int) -> None:
        self._inner, self._arm, self._machine = inner, arm, machine
        self._places = max_length
        self._continuous = inner.checked.plan.generate.batch.continuous
        self._weight_bytes = inner.loaded.weight_bytes
        self._measured: RunResult | None = None
        self.tokenizer = inner.loaded.tokenizer

    # --- text -------------------------------------------------------------------------------------

    def generate(
        self,
        prompt: Prompt,
        *,
        max_new_tokens: int = 256,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        seed: int | None = 0,
        stop_ids: Collection[int] = (),
        ignore_eos: bool = False,
        logprobs: int | None = None,
        reasoning: str = "",
    ) -> Generated:
        """Continue a prompt; arguments as of `stream`. The text is `.text`, or what `str` and `print` make of it."""
        stream = self.stream(
            prompt,
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            seed=seed,
            stop_ids=stop_ids,
            ignore_eos=ignore_eos,
            logprobs=logprobs,
            reasoning=reasoning,
        )
        with stream:
            stream.wait()
            tokens = list(stream) if logprobs is not None else []
            ids, stop = ([token.id for token in tokens], tokens[-1].stop) if tokens else stream.ids()
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        return Generated(text, ids, len(stream.prompt_ids), stop, tokens)

    def stream(
        self,
        prompt: Prompt,
        *,
        max_new_tokens: int = 256,
        temperature: float = 0.0,
        top_p: float = 1.0,
        top_k: int = 0,
        seed: int | None = 0,
        stop_ids: Collection[int] = (),
        ignore_eos: bool = False,
        logprobs: int | None = None,
        reasoning: str = "",
    ) -> TokenStream:
        """The tokens of a continuation, as they come.

        prompt       a text, token ids, or messages ({"role": ..., "content": ...}), which become a chat
        temperature  0 is greedy; top_p and top_k filter what is drawn from
        seed         of the draws; None: another text each time, as always with batching=continuous, whose texts share a
                     generator: there 0 counts as None, and other seeds are refused
        stop_ids     ids after which to stop, besides those that end the model's texts, which `ignore_eos` goes past
        logprobs     tell the log-probability of each token, and of so many likeliest ones (0 to 20). In the custom loop
                     the step is then another one, captured anew, without the kernel that chooses tokens
        reasoning    of a chat: how long to reason, if its template knows (low, medium, high; on, off)
        """
        numbers = (("max_new_tokens", max_new_tokens, Integral), ("top_k", top_k, Integral), ("top_p", top_p, Real))
        for name, value, kind in (*numbers, ("temperature", temperature, Real)):
            if not isinstance(value, kind):
                raise InputError(f"{name} is {shown(value)}; it must be a number.")
        if logprobs is not None and not 0 <= logprobs <= MOST_LOGPROBS:
            raise InputError(f"logprobs is {logprobs}; it must be from 0 to {MOST_LOGPROBS}, or None.")
        used_seed = secrets.randbelow(1 << 31) if seed is None else seed
        Workload("?", 0, max_new_tokens, 1, temperature, used_seed, top_k=top_k, top_p=top_p)  # checks their ranges
        inner = self._inner
        ids = self.prompt_ids(prompt, reasoning)
        if self._continuous:
            _check_among_others(inner, len(ids) + max_new_tokens, logprobs, seed if temperature and seed else None)
        past_eos = ignore_eos or inner.facts.random
        eos = frozenset() if past_eos else frozenset(inner.loaded.eos)
        stops = frozenset(stop_ids)
        job = Generate(
            inner.checked.plan,
            "",
            0,
            max_new_tokens,
            1,
            temperature,
            used_seed,
            past_eos,
            False,
            top_k,
            top_p,
            prove=False,
            prompt_ids=ids,
            places=self._room(len(ids), max_new_tokens),
        )
        stream = TokenStream(ids, max_new_tokens, stops | eos, inner.pieces(), self.tokenizer, logprobs)
        likely = 0 if logprobs is None else MOST_LOGPROBS
        return stream.begin(lambda receive, closed: inner.tell(job, receive, closed, stops, likely))

    def prompt_ids(self, prompt: Prompt, reasoning: str = "") -> list[int]:
        """The token ids of a prompt, as `stream` reads it."""
        if hasattr(prompt, "tolist"):
            prompt = prompt.tolist()
        if isinstance(prompt, str):
            if reasoning:
                raise InputError("reasoning is part of a chat. Give messages in place of a text, or leave it out.")
            check_text("The prompt", prompt)
            ids: list[Any] = self._inner.text_ids(prompt)
        else:
            ids = list(prompt) if isinstance(prompt, Sequence) and not isinstance(prompt, bytes | bytearray) else [None]
            if ids and all(isinstance(message, Mapping) for message in ids):
                return self._inner.chat_ids([_message(message) for message in ids], reasoning)
            if len(ids) == 1 and isinstance(ids[0], list):
                ids = ids[0]
            if not all(isinstance(token, Integral) for token in ids):
                raise InputError("A prompt is a text, a list of token ids, or a list of messages (role, content).")
        if not ids:
            raise InputError("The prompt has no tokens. Write some text to continue.")
        return ids

    def _room(self, prompt: int, new: int) -> int:
        """Slots of a static cache for `prompt` tokens and `new` ones: as many as the first text needs, and with room to
        grow where a later one needs more."""
        needed = cache_places(self._inner.checked.plan.generate.shapes, prompt, new)
        positions = self._inner.facts.max_positions or needed
        if needed > positions:  # refused where it is to be generated, and the cache stays as it is
            return needed
        if needed > self._places:
            self._places = min(1 << (needed - 1).bit_length(), positions) if self._places else needed
        return self._places

    # --- what is known of it ----------------------------------------------------------------------

    def measure(
        self, prompt: str = "", *, max_new_tokens: int = 64, prove: bool = True, progress: bool = True
    ) -> RunResult:
        """A measured run of this model here, as `td.run` does it in a process of its own, and with `prove` the proof of
        what was in effect. The default prompt is half of `max_length` tokens."""
        inner = self._inner
        if self._continuous:
            raise InputError("batching=continuous is measured, and proved, with many requests: use `tokendyno batch`.")
        prompt_tokens = 0 if prompt else inner.created.request.workload.prompt_tokens
        work = Workload(prompt, prompt_tokens, max_new_tokens)
        request = Request(inner.created.request.model, [self._arm], work, proof=prove)
        created = structs.replace(inner.created, id=os.urandom(12).hex(), created=time.time(), request=request)
        job = Generate(
            inner.checked.plan,
            work.prompt,
            work.prompt_tokens,
            work.max_new_tokens,
            1,
            0.0,
            0,
            inner.facts.random,
            True,
            prove=prove,
            places=self._places,
        )
        measuring = inner.measure(job, created)
        if progress:
            shown_until(lambda: inner.run, measuring.done)
        run = measuring.result()
        self._measured = RunResult(document(run), run.snapshot())
        return self._measured

    def prove(self, prompt: str = "", *, max_new_tokens: int = 64, progress: bool = True) -> list[LedgerRow]:
        """Find out what is in effect, in a run that is measured for it; returns the ledger."""
        self.measure(prompt, max_new_tokens=max_new_tokens, progress=progress)
        return self.ledger

    @property
    def ledger(self) -> list[LedgerRow]:
        """The rows of the ledger of the latest `prove` or `measure`; before, each says that it was not looked at."""
        if self._measured is not None:
            return self._measured.document.arms[0].evidence
        arm = self._inner.created.arms[0]
        return prompt_rows(
            Evidence(
                arm.requested[axis],
                choice,
                Finding(axis, choice, "not looked at: model.prove() does", outcome="unchecked"),
            )
            for axis, choice in arm.planned.items()
        )

    @property
    def at_once(self) -> int:
        """How many texts are generated beside each other; 1 without batching."""
        traffic = self._inner.created.request.traffic
        return traffic.concurrent if traffic is not None else 1

    @property
    def failure(self) -> str:
        """What broke so that no further text can be generated; "" where nothing did."""
        return self._inner.failure

    @property
    def choices(self) -> dict[str, str]:
        """What the arm runs as, by axis."""
        return dict(self._inner.checked.planned)

    @property
    def notes(self) -> list[str]:
        """What the rules remark, such as which wishes of a preset gave way."""
        return [verdict.reason for verdict in self._inner.checked.verdicts if verdict.level != "ok"]

    @property
    def bound(self) -> Bound:
        """The least seconds of the token after a prompt of half of `max_length`."""
        inner = self._inner
        work = inner.created.request.workload
        started = Started(work.prompt_tokens, 1, work.max_new_tokens, [])
        predicted = predict("A", inner.checked, inner.facts, self._machine, started)
        seconds = predicted.roofline[0].seconds if predicted.roofline else None
        return Bound(seconds, predicted.roofline_note, predicted.roofline_work)

    @property
    def memory(self) -> Memory:
        """Bytes of the weights, and what was predicted."""
        checked = self._inner.checked
        return Memory(self._weight_bytes, checked.memory.by_part(), checked.room_bytes)

    def close(self) -> None:
        """Free its memory, once the calls before this one have ended."""
        self._inner.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<tokendyno.Model {self._inner.facts.label}: {choices_text(self._arm.choices)}>"
