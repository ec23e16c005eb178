"""An arm as a standalone script, from the same plan that the worker carries out.

The script loads the model, generates twice (the first time is the warm-up) and prints the text and the times. It needs
torch, transformers, and the package that an optimization itself needs; its first line names the versions.
"""

from collections.abc import Iterator
from pathlib import Path

from backend.config import Workload
from backend.models import ModelFacts
from backend.optimizations import axes
from backend.printer import LENGTH, Printer
from backend.rules import Checked
from backend.script import Script
from backend.source import call

_CLOCK = '''class Clock:
    """A streamer: notes when the tokens of a step are there. The prompt comes first."""

    def __init__(self):
        self.times_s, self.counts = [], []

    def put(self, tokens):
        self.counts.append(tokens.cpu().numel() // BATCH_SIZE)
        self.times_s.append(time.perf_counter())

    def end(self):
        pass'''

_REPORT = """first_s, last_s = clock.times_s[1], clock.times_s[-1]
print(f"time to first token: {1000 * (first_s - begin_s):.2f} ms")
steps = zip(clock.times_s[1:], clock.times_s[2:], clock.counts[2:])
latencies_s = [(end_s - start_s) / count for start_s, end_s, count in steps]
if latencies_s:
    print(f"median latency: {1000 * statistics.median(latencies_s):.2f} ms a token")
    print(f"decode speed: {sum(clock.counts[2:]) / (last_s - first_s):.1f} tokens/s")"""


def script(checked: Checked, facts: ModelFacts, workload: Workload, paths: bool = True) -> str:
    """The script's text. `checked` must be runnable; without `paths` no folder of this machine is named."""
    made = Script()
    if checked.plan.load.device != "cpu" and checked.plan.load.loading != "plain":
        made.load["device_map"] = "DEVICE"
    for axis in axes():
        axis.write(made, checked.plan)
    kind = _Encoder if facts.kind == "encoder" else _Decoder
    text = kind(checked, facts, workload, made, paths).text()
    folder = checked.plan.load.kernels_path
    return text if paths or not folder else text.replace(folder, Path(folder).name)


class _Decoder(Printer):
    """Tokens, one after the other."""

    auto = "AutoModelForCausalLM"
    classes = ("GenerationConfig", "TemperatureLogitsWarper", "TopKLogitsWarper", "TopPLogitsWarper")
    functions = (_CLOCK,)

    def _settings(self) -> Iterator[str]:
        yield from super()._settings()
        yield f"MAX_NEW_TOKENS = {self.work.max_new_tokens}"

    def _loaded(self) -> Iterator[str]:
        if self.source.kind == "random" or self.work.ignore_eos:
            yield "# Without the settings of a checkpoint: no sampling, no end of text."
            yield "model.generation_config = GenerationConfig(pad_token_id=0)"
            return
        yield "# Of the checkpoint's own settings, which may sample, only the end of text is kept."
        yield "ends = model.generation_config.eos_token_id"
        yield "ends = tokenizer.eos_token_id if ends is None else ends"
        yield "pad = tokenizer.pad_token_id"
        yield "model.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=pad)"

    def _inputs(self) -> Iterator[str]:
        yield from super()._inputs()
        yield LENGTH

    def _run(self) -> Iterator[str]:
        fixed = self.plan.generate.cache == "static"  # compiled and captured graphs hold its addresses
        if self.made.cache and fixed:
            yield f"cache = {self.made.cache}"
        yield 'for run in ("warm-up", "timed"):'
        if self.made.cache:
            yield "    cache.reset()" if fixed else f"    cache = {self.made.cache}"
        if self.work.temperature > 0:
            yield f"    torch.manual_seed({self.work.seed})"
        yield "    clock = Clock()"
        if self.cuda:
            yield "    torch.cuda.synchronize()"
        yield "    begin_s = time.perf_counter()"
        yield "    " + (self._decode() if self.made.decode else self._generate())
        yield ""
        yield 'new_ids = output[0, inputs["input_ids"].shape[1] :].tolist()'
        random = self.source.kind == "random"
        yield f"print({'new_ids' if random else 'tokenizer.decode(new_ids, skip_special_tokens=True)'})"
        yield _REPORT

    def _decode(self) -> str:
        """The call of a loop that an axis brought, which takes transformers' own warpers of the distribution."""
        work = self.work
        if not work.temperature:
            return f"output = {self.made.decode}"
        warpers = [f"TemperatureLogitsWarper({float(work.temperature)!r})"]
        warpers += [f"TopKLogitsWarper({work.top_k})"] if work.top_k else []
        warpers += [f"TopPLogitsWarper({float(work.top_p)!r})"] if work.top_p < 1 else []
        start, _, arguments = self.made.decode.removesuffix(")").partition("(")
        return call(f"output = {start}", arguments.split(", "), {"warpers": f"[{', '.join(warpers)}]"}, 4)

    def _generate(self) -> str:
        keywords = {"past_key_values": "cache"} if self.made.cache else {}
        keywords |= {"max_new_tokens": "MAX_NEW_TOKENS", "do_sample": str(self.work.temperature > 0)}
        if self.work.temperature > 0:
            keywords["temperature"] = repr(float(self.work.temperature))
            keywords |= {"top_k": str(self.work.top_k), "top_p": repr(float(self.work.top_p))}
        if "static" in self.plan.generate.cache and self.plan.generate.compile_mode is None:
            keywords["disable_compile"] = "True"  # on a GPU a static cache is compiled unasked
        return call("output = model.generate", ["**inputs"], keywords | self.made.generate | {"streamer": "clock"}, 4)


class _Encoder(Printer):
    """The whole prompt through the model, again and again."""

    auto = "AutoModel"

    def _settings(self) -> Iterator[str]:
        yield from super()._settings()
        yield f"PASSES = {self.work.max_new_tokens}"

    def _run(self) -> Iterator[str]:
        compiled = self.made.generate.get("compile_config")
        yield f"forward = torch.compile(model, **{compiled}.to_dict())" if compiled else "forward = model"
        yield 'for run in ("warm-up", "timed"):'
        yield "    latencies_s = []"
        yield "    for _ in range(PASSES):"
        if self.cuda:
            yield "        torch.cuda.synchronize()"
        yield "        begin_s = time.perf_counter()"
        yield "        with torch.no_grad():"  # quanto's 4-bit tensors refuse inference mode, unless made in it
        yield "            output = forward(**inputs)"
        if self.cuda:
            yield "        torch.cuda.synchronize()"
        yield "        latencies_s.append(time.perf_counter() - begin_s)"
        yield ""
        yield "print(output.last_hidden_state.shape)"
        yield 'print(f"median latency: {1000 * statistics.median(latencies_s):.2f} ms a pass")'
        yield 'print(f"speed: {PASSES / sum(latencies_s):.1f} passes/s")'
