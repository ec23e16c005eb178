"""An arm of many requests as a standalone script: static batches, or transformers' continuous batching.

The script serves all requests twice, once to warm up, and prints every text and the useful tokens a second. Continuous
batching is used as its users do, through the manager and its thread; the worker drives the same processor step by step.
"""

from collections.abc import Iterator

from tokendyno.backend.arms.arguments import continuous_settings, keeps_uncompiled, parts_of
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.arms.requests import of_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.export.printer import Printer
from tokendyno.backend.export.script import without_paths
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.plan import CACHE_SIZES
from tokendyno.backend.predict.pages import pages_of
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import call, quoted
from tokendyno.backend.traffic import Traffic, TrafficRequest

_PROMPT_IDS = '''def prompt_ids(source, tokens):
    """Ids of a prompt: given as ids, as a text, or as the seed that a text is drawn from."""
    if isinstance(source, list):
        return source
    ids = tokenizer(prompt_text(source, tokens) if isinstance(source, int) else source)["input_ids"]
    return (ids * (tokens // len(ids) + 1))[:tokens] if tokens else ids'''

_CUT = '''def cut(ids, tokens, eos):
    """The first `tokens` ids, up to the first that ends a text."""
    ends = [i for i, token in enumerate(ids[:tokens]) if token in eos]
    return ids[: min(ends, default=tokens - 1) + 1]'''

_NO_CLOCK = '''class Clock:
    """The decode loop reports its steps; nothing is timed here."""

    def event(self):
        pass

    def tell(self, event, ids):
        pass

    def stopping(self):
        return False'''

_STATIC_RUN = '''def run():
    """Serve all requests: ids by number, and seconds."""
    left, found, begin_s = list(requests), {}, time.perf_counter()
    while left:
        time.sleep(max(0.0, left[0][1] - (time.perf_counter() - begin_s)))
        here = [one for one in left if one[1] <= time.perf_counter() - begin_s]
        batch = SORTED[:CONCURRENT]
        left = [one for one in left if one not in batch]
        found |= serve(batch)
    return found, time.perf_counter() - begin_s'''

_CONTINUOUS_RUN = '''def run():
    """Serve all requests: ids by number, and seconds."""
    found, begin_s = {}, time.perf_counter()
    for number, arrival_s, tokens, ids in requests:
        time.sleep(max(0.0, arrival_s - (time.perf_counter() - begin_s)))
        manager.add_request(ids, request_id=str(number), max_new_tokens=tokens, eos_token_id=eos or -1)
    while len(found) < len(requests):
        result = manager.get_result(timeout=300)
        if result is None or result.error:
            raise RuntimeError(f"continuous batching ended early: {result and result.error}")
        found[int(result.request_id)] = result.generated_tokens
    return found, time.perf_counter() - begin_s'''

_REPORT = """for number in sorted(found):
    print(f"{number}: {tokenizer.decode(found[number], skip_special_tokens=True)!r}")
useful = sum(map(len, found.values()))
print(f"{useful} useful tokens in {seconds:.2f} s: {useful / seconds:.1f} tokens/s")"""


def batch_script(checked: Checked, facts: ModelFacts, work: Workload, traffic: Traffic, paths: bool = True) -> str:
    """The script's text. `checked` must be runnable; without `paths` no folder of this machine is named."""
    work, of_this_arm = of_arm(work, traffic, checked.plan)
    traffic = of_this_arm or traffic
    kind = _Continuous if checked.plan.generate.batch.continuous else _Static
    text = kind(checked, facts, work, parts_of(checked), paths, traffic).text()
    return text if paths else without_paths(text, checked)


class _Batch(Printer):
    """What both share: the requests, and the report."""

    auto = "AutoModelForCausalLM"
    classes = ("GenerationConfig", "ContinuousBatchingConfig")

    def __init__(
        self, checked: Checked, facts: ModelFacts, work: Workload, parts: Script, paths: bool, traffic: Traffic
    ) -> None:
        super().__init__(checked, facts, work, parts, paths)
        self.traffic = traffic

    def text(self) -> str:
        self.parts.define("worker/load/loader.py", "eos_and_pad")
        self.parts.define("traffic/requests.py", "prompt_text")
        if self.plan.generate.batch.continuous and not self.traffic.exact:
            self.parts.define("predict/pages.py", "pages_needed")
        return super().text()

    def _settings(self) -> Iterator[str]:
        yield from (line for line in super()._settings() if not line.startswith(("PROMPT", "BATCH_SIZE")))
        yield f"CONCURRENT = {self.work.batch_size}"
        yield "REQUESTS = ["
        yield "    # arrival in seconds, tokens to generate, prompt (ids, a text, or a seed) and its tokens"
        for one in self.traffic.requests:
            yield f"    ({one.arrival_s!r}, {one.max_new_tokens}, {_prompt(one)}, {one.prompt_tokens}),"
        yield "]"

    def _loaded(self) -> Iterator[str]:
        yield "eos, pad = eos_and_pad(model.generation_config, tokenizer)"
        if self.work.ignore_eos:
            yield "eos = []  # each request generates all its tokens"
        yield "model.generation_config = GenerationConfig(pad_token_id=pad)"

    def _inputs(self) -> Iterator[str]:
        yield "requests = ["
        yield "    (number, arrival_s, tokens, prompt_ids(source, length))"
        yield "    for number, (arrival_s, tokens, source, length) in enumerate(REQUESTS)"
        yield "]"


def _prompt(one: TrafficRequest) -> str:
    if one.token_ids:
        return repr(one.token_ids)
    return quoted(one.prompt) if one.prompt.strip() else str(one.seed)


class _Static(_Batch):
    """Padded batches, each as long as its longest request."""

    def _classes(self) -> Iterator[str]:
        yield _PROMPT_IDS
        yield _CUT
        if self.parts.loop:
            yield _NO_CLOCK
        yield "\n".join(self._serve())
        key = "sorted(here, key=lambda one: (one[2], len(one[3]), one[0]))"
        batch = self.plan.generate.batch
        run = _STATIC_RUN.replace("SORTED", key if batch.order == "sorted" else "here")
        yield run if batch.kind == "static" else run.replace("CONCURRENT", "1")

    def _serve(self) -> Iterator[str]:
        yield "def serve(batch):"
        yield '    """Ids of each request of one batch, padded on the left, by its number."""'
        yield "    global loop, cache, held" if self.parts.loop or self._fixed else "    # a cache for each batch"
        yield "    longest, most = max(len(one[3]) for one in batch), max(one[2] for one in batch)"
        yield "    rows = [one[3] for one in batch]"
        if self.plan.generate.shapes in ("padded", "buckets"):
            yield "    rows += [rows[0]] * (CONCURRENT - len(rows))  # so that few shapes are compiled"
        yield "    given = [[pad] * (longest - len(ids)) + ids for ids in rows]"
        yield "    mask = [[0] * (longest - len(ids)) + [1] * len(ids) for ids in rows]"
        yield (
            '    inputs = {"input_ids": torch.tensor(given, device=DEVICE), '
            '"attention_mask": torch.tensor(mask, device=DEVICE)}'
        )
        yield from (f"    {line}" for line in self.parts.inputs)
        yield '    MAX_LENGTH = inputs["input_ids"].shape[1] + most'
        if self._fixed:
            yield "    shape = (len(rows), inputs['input_ids'].shape[1], MAX_LENGTH)"
            yield "    if shape != held:  # compiled and captured steps hold the addresses of a cache"
            yield f"        held, cache = shape, {self.parts.cache}"
            if self.parts.loop:
                yield f"        loop = {self.parts.loop}"
            yield "    cache.reset()"
        elif self.parts.cache:
            yield f"    cache = {self.parts.cache}"
        if self.parts.loop:
            keywords = {"cache": "cache", "max_new_tokens": "most", "meter": "Clock()", "ignore_eos": "not eos"}
            yield "    " + call("output = loop.generate", ["**inputs"], keywords, 4)
        else:
            yield "    " + call("output = model.generate", ["**inputs"], self._keywords(), 4)
        yield "    new = output[:, inputs['input_ids'].shape[1] :].tolist()"
        yield "    return {one[0]: cut(ids, one[2], eos) for one, ids in zip(batch, new)}"

    @property
    def _fixed(self) -> bool:
        return bool(self.parts.cache) and self.plan.generate.cache.fixed

    def _keywords(self) -> dict[str, str]:
        keywords = {"past_key_values": "cache"} if self.parts.cache else {}
        keywords |= {"max_new_tokens": "most", "do_sample": "False", "eos_token_id": "eos or None"}
        if keeps_uncompiled(self.plan):
            keywords["disable_compile"] = "True"
        return keywords | self.parts.generate

    def _run(self) -> Iterator[str]:
        yield "loop = cache = held = None"
        yield "with torch.inference_mode():"
        yield "    for _ in range(2):  # the first time loads kernels, compiles and allocates"
        yield "        found, seconds = run()"
        yield _REPORT


class _Continuous(_Batch):
    """The manager of transformers, one for both times."""

    def _classes(self) -> Iterator[str]:
        yield _PROMPT_IDS
        yield _CONTINUOUS_RUN

    def _run(self) -> Iterator[str]:
        batch = self.plan.generate.batch
        pages = str(pages_of(self.traffic, batch.page_tokens))
        if not (self.traffic.exact or self.traffic.pages):  # of texts, whose tokens only the tokenizer knows
            yield "lengths = sorted((len(ids) + tokens for _, _, tokens, ids in requests), reverse=True)"
            yield f"pages = pages_needed(lengths[:CONCURRENT], {batch.page_tokens})"
            pages = "pages"
        settings = continuous_settings(batch) | {
            "num_blocks": pages,
            "max_batch_tokens": str(max(batch.step_tokens, self.work.batch_size)),
            "max_requests_per_batch": "CONCURRENT",
        }
        if batch.graphs:
            settings["kv_padding_interval_size"] = f"-(-{pages} * {batch.page_tokens} // {CACHE_SIZES})"
        yield call("config = ContinuousBatchingConfig", [], settings)
        generation = {
            "max_new_tokens": str(self.work.max_new_tokens),
            "do_sample": "False",
            "eos_token_id": "eos or -1",
            "pad_token_id": "pad",
        }
        yield call("settings = GenerationConfig", [], generation)
        keywords = {"generation_config": "settings", "continuous_batching_config": "config"}
        yield call("batching = model.continuous_batching_context_manager", [], keywords)
        yield "with batching as manager:"
        yield "    for _ in range(2):  # the first time loads kernels, captures graphs and allocates"
        yield "        found, seconds = run()"
        yield _REPORT
