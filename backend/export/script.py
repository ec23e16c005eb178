"""An arm as a standalone script, from the same plan that the worker carries out and with the worker's own code.

The script loads the model, generates twice (the first time is the warm-up) and prints the text and the times. It needs
torch, transformers, and the package that an optimization itself needs; its first line names the versions.
"""

from collections.abc import Iterator
from pathlib import Path

from backend.arms.check import Checked
from backend.config import Workload
from backend.errors import InputError
from backend.export.printer import LENGTH, Printer
from backend.models import ModelFacts
from backend.optimizations import all_axes
from backend.script.parts import Script
from backend.script.source import call

_CLOCK = '''class Clock:
    """A streamer: notes when the tokens of each step exist, in seconds from the start. The prompt comes first."""

    def __init__(self):
        self.times_s, self.counts = [], []
        self.begin_s = time.perf_counter()

    def put(self, tokens):
        self.counts.append(tokens.cpu().numel() // BATCH_SIZE)
        self.times_s.append(time.perf_counter() - self.begin_s)

    def end(self):
        pass'''

_METER = '''class Clock:
    """Notes when the token of each step exists, in seconds from the start."""

    def __init__(self):
        self.times_s, self.counts = [0.0], [0]
        self.begin_s = time.perf_counter()

    def event(self):
        return time.perf_counter()

    def tell(self, event, ids):
        self.counts.append(1)
        self.times_s.append(event - self.begin_s)

    def stopping(self):
        return False'''

_CUDA_METER = '''class Clock:
    """Notes when the token of each step exists on the GPU, in seconds from the start."""

    def __init__(self):
        self.times_s, self.counts = [0.0], [0]
        self.begin = self.event()

    def event(self):
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def tell(self, event, ids):
        self.counts.append(1)
        self.times_s.append(self.begin.elapsed_time(event) / 1e3)

    def stopping(self):
        return False'''

_REPORT = """first_s, last_s = clock.times_s[1], clock.times_s[-1]
print(f"time to first token: {1000 * first_s:.2f} ms")
steps = zip(clock.times_s[1:], clock.times_s[2:], clock.counts[2:])
latencies_s = [(end_s - start_s) / count for start_s, end_s, count in steps]
if latencies_s:
    print(f"median latency: {1000 * statistics.median(latencies_s):.2f} ms per token")
    print(f"decode speed: {sum(clock.counts[2:]) / (last_s - first_s):.1f} tokens/s")"""


def script(checked: Checked, facts: ModelFacts, workload: Workload, paths: bool = True) -> str:
    """The script's text. `checked` must be runnable; without `paths` no folder of this machine is named."""
    parts = Script()
    load = checked.plan.load
    if load.device != "cpu" and load.loading != "plain":
        parts.load["device_map"] = "DEVICE"
    if load.source.kind == "random":
        parts.define("worker/load/random_model.py", "initialize", "byte_tokenizer")
    for axis in all_axes():
        axis.write(parts, checked.plan)
    kind = _Encoder if facts.kind == "encoder" else _Decoder
    text = kind(checked, facts, workload, parts, paths).text()
    return text if paths or not load.kernels_path else text.replace(load.kernels_path, Path(load.kernels_path).name)


class _Decoder(Printer):
    """Generates tokens one after the other."""

    auto = "AutoModelForCausalLM"
    classes = ("GenerationConfig",)

    def _settings(self) -> Iterator[str]:
        yield from super()._settings()
        yield f"MAX_NEW_TOKENS = {self.work.max_new_tokens}"

    def _classes(self) -> Iterator[str]:
        yield (_CUDA_METER if self.cuda else _METER) if self.parts.loop else _CLOCK

    def text(self) -> str:
        self.parts.define("worker/load/loader.py", "eos_and_pad")
        if self.parts.loop and self.work.temperature:
            self.parts.define("worker/loop/sampling.py", "Sampling")
        if self.random and self.chat:
            raise InputError("Random weights have no chat template. Switch chat off.")
        return super().text()

    def _loaded(self) -> Iterator[str]:
        yield "eos, pad = eos_and_pad(model.generation_config, tokenizer)"
        if self.work.ignore_eos:
            yield "# None of a checkpoint's generation settings: no sampling, and EOS is ignored."
            yield "model.generation_config = GenerationConfig(pad_token_id=pad)"
        else:
            yield "# Of a checkpoint's generation settings, which may sample, only EOS and padding are kept."
            yield "model.generation_config = GenerationConfig(eos_token_id=eos or None, pad_token_id=pad)"

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
        yield 'for run in ("warm-up", "timed"):'
        if self.parts.cache and not self.parts.loop:  # which resets it by itself
            yield "    cache.reset()" if fixed else f"    cache = {self.parts.cache}"
        if self.work.temperature > 0 and not self.parts.loop:
            yield f"    torch.manual_seed({self.work.seed})"
        if self.cuda:
            yield "    torch.cuda.synchronize()"
        yield "    clock = Clock()"
        yield from self._loop() if self.parts.loop else self._generate()
        yield ""
        yield 'new_ids = output[0, inputs["input_ids"].shape[1] :].tolist()'
        yield "print(tokenizer.decode(new_ids, skip_special_tokens=True))"
        yield _REPORT

    def _loop(self) -> Iterator[str]:
        keywords = {"cache": "cache", "max_new_tokens": "MAX_NEW_TOKENS", "meter": "clock"}
        if self.work.temperature > 0:
            sampling = f"{float(self.work.temperature)!r}, {self.work.top_k}, {float(self.work.top_p)!r}"
            keywords |= {"sampling": f"Sampling({sampling})", "seed": str(self.work.seed)}
        if self.work.ignore_eos:
            keywords["ignore_eos"] = "True"
        yield "    with torch.no_grad():"  # quanto's 4-bit tensors refuse inference mode, unless created in it
        yield "        " + call("output = loop.generate", ["**inputs"], keywords, 8)

    def _generate(self) -> Iterator[str]:
        keywords = {"past_key_values": "cache"} if self.parts.cache else {}
        keywords |= {"max_new_tokens": "MAX_NEW_TOKENS", "do_sample": str(self.work.temperature > 0)}
        if self.work.temperature > 0:
            keywords["temperature"] = repr(float(self.work.temperature))
            keywords |= {"top_k": str(self.work.top_k), "top_p": repr(float(self.work.top_p))}
        if self.plan.generate.cache.static and self.plan.generate.compile_mode is None:
            keywords["disable_compile"] = "True"  # on a GPU, generate compiles with a static cache by default
        keywords |= self.parts.generate | {"streamer": "clock"}
        yield "    " + call("output = model.generate", ["**inputs"], keywords, 4)


class _Encoder(Printer):
    """Runs the whole prompt through the model again and again."""

    auto = "AutoModel"

    def _settings(self) -> Iterator[str]:
        yield from super()._settings()
        yield f"PASSES = {self.work.max_new_tokens}"

    def _run(self) -> Iterator[str]:
        compiled = self.parts.generate.get("compile_config")
        yield f"forward = torch.compile(model, **{compiled}.to_dict())" if compiled else "forward = model"
        yield 'for run in ("warm-up", "timed"):'
        yield "    latencies_s = []"
        yield "    for _ in range(PASSES):"
        if self.cuda:
            yield "        torch.cuda.synchronize()"
        yield "        begin_s = time.perf_counter()"
        yield "        with torch.no_grad():"  # quanto's 4-bit tensors refuse inference mode, unless created in it
        yield "            output = forward(**inputs)"
        if self.cuda:
            yield "        torch.cuda.synchronize()"
        yield "        latencies_s.append(time.perf_counter() - begin_s)"
        yield ""
        yield "print(output.last_hidden_state.shape)"
        yield 'print(f"median latency: {1000 * statistics.median(latencies_s):.2f} ms per pass")'
        yield 'print(f"speed: {PASSES / sum(latencies_s):.1f} passes/s")'
