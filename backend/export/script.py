"""An arm as a standalone script, from the same plan that the worker carries out and with the worker's own code.

The script loads the model, warms up as a run does, generates, and prints the text and the times, by the clock of a run
(`tokendyno.backend.worker.measure`). It needs torch, transformers, and the package that an optimization itself needs;
its first line names the versions.
"""

from collections.abc import Iterator
from pathlib import Path

from tokendyno.backend.arms.arguments import keeps_uncompiled, parts_of, sampling
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.export.printer import LENGTH, Printer
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.predict.kv import GROUP
from tokendyno.backend.predict.lengths import WARM_UP, WARM_UP_PROMPTS
from tokendyno.backend.script.source import call

_CLOCK = '''class Clock(StoppingCriteria):
    """Notes when the tokens of each step exist: `generate` asks it after each step whether to stop."""

    def __init__(self, length):
        self.length, self.events, self.counts = length, [], []
        self.go_on = torch.zeros(BATCH_SIZE, dtype=torch.bool, device=DEVICE)
        self.begin = self.event()

    def __call__(self, input_ids, scores, **kwargs):
        self.events.append(self.event())
        self.counts.append(input_ids.shape[1] - self.length)
        self.length = input_ids.shape[1]
        return self.go_on
'''

_METER = '''class Clock:
    """Notes when the token of each step exists."""

    def __init__(self):
        self.events, self.counts = [], []
        self.begin = self.event()

    def tell(self, event, ids):
        self.events.append(event)
        self.counts.append(1)

    def stopping(self):
        return False
'''

_HOST = """
    def event(self):
        return time.perf_counter()

    def times_s(self):
        return [event - self.begin for event in self.events]"""

_CUDA = """
    def event(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def times_s(self):
        torch.cuda.synchronize()
        return [self.begin.elapsed_time(event) / 1e3 for event in self.events]"""

_REPORT = """times_s = clock.times_s()
print(f"time to first token: {1000 * times_s[0]:.2f} ms")
steps = zip(times_s, times_s[1:], clock.counts[1:])
latencies_s = [(end_s - start_s) / count for start_s, end_s, count in steps for _ in range(count)]
if latencies_s:
    print(f"median latency: {1000 * statistics.median(latencies_s):.3f} ms per token")
    print(f"decode speed: {len(latencies_s) / sum(latencies_s):.1f} tokens/s")"""

_CUDA_NOW = '''def now():
    """An event behind what the GPU was given so far, once it is there."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    event.synchronize()
    return event'''


def script(checked: Checked, facts: ModelFacts, workload: Workload, paths: bool = True) -> str:
    """The standalone script's text. `checked` must be runnable; without `paths` no folder of this machine is named."""
    printer = _Encoder if facts.kind == "encoder" else _Decoder
    text = printer(checked, facts, workload, parts_of(checked), paths).text()
    folder = checked.plan.load.kernels_path
    return text if paths or not folder else text.replace(folder, Path(folder).name)


class _Decoder(Printer):
    """Generates tokens one after the other."""

    auto = "AutoModelForCausalLM"
    classes = ("GenerationConfig", "StoppingCriteria")

    def _settings(self) -> Iterator[str]:
        yield from super()._settings()
        yield f"MAX_NEW_TOKENS = {self.work.max_new_tokens}"

    def _classes(self) -> Iterator[str]:
        yield (_METER if self.parts.loop else _CLOCK) + (_CUDA if self.cuda else _HOST)

    def text(self) -> str:
        self.parts.define("worker/load/loader.py", "eos_and_pad")
        if self._window:
            self.parts.define("predict/lengths.py", "past_window", "warm_up_tokens")
        if self.parts.loop and self.work.temperature:
            self.parts.define("worker/loop/sampling.py", "Sampling")
        if self.random and self.chat:
            raise InputError("Random weights have no chat template. Use a plain prompt.")
        return super().text()

    def _loaded(self) -> Iterator[str]:
        yield "eos, pad = eos_and_pad(model.generation_config, tokenizer)"
        if self.work.ignore_eos:
            yield "# None of a checkpoint's generation settings: no sampling, and EOS is ignored."
        else:
            yield "# Of a checkpoint's generation settings, which may sample, only EOS and padding are kept."
        yield "model.generation_config = GenerationConfig(pad_token_id=pad)"

    @property
    def _window(self) -> int:
        """Tokens of the model's sliding window; 0 without one."""
        return self.facts.window or 0 if self.facts.sliding_layers else 0

    def _inputs(self) -> Iterator[str]:
        yield from super()._inputs()
        yield LENGTH

    def _run(self) -> Iterator[str]:
        fixed = self.plan.generate.cache.fixed  # compiled and captured graphs hold its addresses
        if self.parts.cache and fixed:
            yield f"cache = {self.parts.cache}"
        if self.parts.loop:
            yield f"loop = {self.parts.loop}"
        if not fixed and (compiled := self.parts.generate.pop("compile_config", None)):
            yield f"model.compile(**{compiled}.to_dict())  # generate itself compiles with a static cache only"
        yield from self._warm_up()
        yield "with torch.inference_mode():"
        yield "    for given, tokens in [*warm_up, (inputs, MAX_NEW_TOKENS)]:"
        yield from (f"        {line}" for line in self._generation(fixed))
        yield ""
        yield 'new_ids = output[0, inputs["input_ids"].shape[1] :].tolist()'
        yield "print(tokenizer.decode(new_ids, skip_special_tokens=True))"
        yield _REPORT

    def _warm_up(self) -> Iterator[str]:
        """The warm-up of `tokendyno.backend.worker.runners.decode`, but that a slow prompt too is read three times."""
        few = max(2, min(WARM_UP, self.work.max_new_tokens))
        yield f"short = (inputs, {few})  # a prompt and new tokens: they load and compile kernels, allocate memory"
        yield f"warm_up = [{', '.join(['short'] * WARM_UP_PROMPTS)}]"
        if self._window:
            prompt, group = 'inputs["input_ids"].shape[1]', f", {GROUP}" if self.plan.generate.cache.quantized else ""
            compiled = self.plan.generate.compile_mode is not None
            yield f"if length := past_window({prompt}, {self._window}, MAX_LENGTH{group}):"
            yield "    # a full sliding window needs other kernels, masks and graphs"
            yield "    long_ids = input_ids[:, :1].repeat(1, length)"
            yield '    long = {"input_ids": long_ids, "attention_mask": torch.ones_like(long_ids)}'
            yield f"    past = (long, warm_up_tokens(length, MAX_LENGTH, {self._window}))"
            yield f"    warm_up = [{'short, past, past, short' if compiled else 'past, short, short'}]"

    def _generation(self, fixed: bool) -> Iterator[str]:
        """One generation, of the warm-up or the measured one."""
        if self.parts.cache and not self.parts.loop:  # which resets it by itself
            yield "cache.reset()" if fixed else f"cache = {self.parts.cache}"
        if self.work.temperature > 0 and not self.parts.loop:
            yield f"torch.manual_seed({self.work.seed})"
        if self.cuda:
            yield "torch.cuda.synchronize()"
        if self.parts.loop:
            yield "clock = Clock()"
            yield call("output = loop.generate", ["**given"], self._loop_keywords(), 8)
        else:
            yield 'clock = Clock(given["input_ids"].shape[1])'
            yield call("output = model.generate", ["**given"], self._keywords(), 8)

    def _loop_keywords(self) -> dict[str, str]:
        keywords = {"cache": "cache", "max_new_tokens": "tokens", "meter": "clock"}
        if self.work.temperature > 0:
            sampling = f"{float(self.work.temperature)!r}, {self.work.top_k}, {float(self.work.top_p)!r}"
            keywords |= {"sampling": f"Sampling({sampling})", "seed": str(self.work.seed)}
        if self.work.ignore_eos:
            keywords["ignore_eos"] = "True"
        elif self._window:
            keywords["ignore_eos"] = "given is not inputs"
        if (self.plan.generate.prefill_graphs or self.plan.generate.prefill_compiled) and self._window:
            keywords["replay"] = "given is inputs"
        return keywords

    def _keywords(self) -> dict[str, str]:
        keywords = {"past_key_values": "cache"} if self.parts.cache else {}
        keywords |= {"max_new_tokens": "tokens"} | sampling(self.work)
        if not self.work.ignore_eos:
            keywords["eos_token_id"] = "(eos or None) if given is inputs else None" if self._window else "eos or None"
        if keeps_uncompiled(self.plan):
            keywords["disable_compile"] = "True"
        return keywords | self.parts.generate | {"stopping_criteria": "[clock]"}


class _Encoder(Printer):
    """Runs the whole prompt through the model again and again."""

    auto = "AutoModel"

    def text(self) -> str:
        if self.source.forward:
            self.auto = _Decoder.auto
        return super().text()

    def _settings(self) -> Iterator[str]:
        yield from super()._settings()
        yield f"PASSES = {self.work.max_new_tokens}"

    def _classes(self) -> Iterator[str]:
        if self.cuda:
            yield _CUDA_NOW

    def _run(self) -> Iterator[str]:
        compiled = self.parts.generate.get("compile_config")
        passes = WARM_UP + (WARM_UP_PROMPTS if compiled else 0)
        now = "now()" if self.cuda else "time.perf_counter()"
        yield f"forward = torch.compile(model, **{compiled}.to_dict())" if compiled else "forward = model"
        yield from self.parts.forward
        yield "with torch.inference_mode():"
        yield f"    for passes in ({passes}, PASSES):  # the first ones load kernels, choose among them, allocate"
        yield f"        times = [{now}]"
        yield "        for _ in range(passes):"
        if compiled:
            yield "            torch.compiler.cudagraph_mark_step_begin()"
        yield f"            output = forward(**inputs{', use_cache=False' * self.source.forward})"
        yield f"            times.append({now})"
        yield ""
        took = "start.elapsed_time(end) / 1e3" if self.cuda else "end - start"
        yield f"latencies_s = [{took} for start, end in zip(times, times[1:])]"
        yield f"print(output.{'logits' if self.source.forward else 'last_hidden_state'}.shape)"
        yield 'print(f"median latency: {1000 * statistics.median(latencies_s):.3f} ms per pass")'
        yield 'print(f"speed: {PASSES / sum(latencies_s):.1f} passes/s")'
