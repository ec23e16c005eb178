"""An arm as a standalone script, from the same plan that the worker carries out.

The script loads the model, generates twice (the first time is the warm-up) and prints the text and the times. It needs
torch, transformers, and the package that an optimization itself needs; its first line names the versions.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from backend import hardware
from backend.config import STOCK_SENTENCE, Workload
from backend.errors import InputError
from backend.models import ModelFacts
from backend.optimizations import axes
from backend.plan import ONE_THREAD_BELOW_BYTES, RANDOM_SEED
from backend.rules import Checked
from backend.script import Script
from backend.source import call, comment, imports, literal, quoted, same_quotes

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


class _Printer:
    """Puts the parts of a script in their order; what is run in the end is up to the kind of model."""

    auto = ""
    classes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    def __init__(self, checked: Checked, facts: ModelFacts, workload: Workload, made: Script, paths: bool) -> None:
        self.checked, self.facts, self.work, self.made, self.paths = checked, facts, workload, made, paths
        self.plan, self.source = checked.plan, checked.plan.load.source
        self.cuda = checked.plan.load.device == "cuda"

    def text(self) -> str:
        """The whole file. What is used decides what is imported."""
        main = "\n".join([*self._load(), "", *self._inputs(), "", *self._run(), *self.made.finish])
        functions = [*self.functions, *self.made.functions]
        gap = "\n\n\n" if functions else "\n\n"
        body = gap.join(["\n".join(self._settings()), *functions, main])
        if "MAX_LENGTH" not in body.replace(_LENGTH, ""):
            body = body.replace(f"{_LENGTH}\n", "")
        names = ["AutoConfig", self.auto, "AutoTokenizer", *self.classes]
        wanted = [f"from transformers import {name}" for name in names if re.search(rf"\b{name}\b", body)]
        found = imports(["import statistics", "import time", "import torch", *wanted, *self.made.imports])
        return same_quotes("\n".join([*self._head(), "", *found, "", body, ""]))

    def _head(self) -> Iterator[str]:
        """The first two lines hold nobody's words: Python would take "coding: x" in them for an encoding."""
        found = hardware.versions()
        versions = [f"{name} {found[name]}" for name in ("transformers", "torch") if name in found]
        yield f"# Made by tokendyno {found.get('tokendyno', '')} for {' and '.join(versions)}."
        yield "#"
        usual = {axis.name: axis.default for axis in axes()}
        choices = [f"{axis}={choice}" for axis, choice in self.checked.requested.items() if usual[axis] != choice]
        yield from comment(f"{self.facts.label}: {', '.join(choices) or 'as transformers does it by itself'}.")
        for verdict in self.checked.verdicts:
            if verdict.level == "fallback":
                step = f"{verdict.axis}={self.checked.requested.get(verdict.axis, '')} falls back to {verdict.becomes}"
                yield from comment(f"{step}: {verdict.reason}")

    def _settings(self) -> Iterator[str]:
        match self.source.kind:
            case "random":
                yield literal(json.loads(self.source.config_json), "CONFIG = ")
            case "hub":
                yield f"MODEL = {quoted(self.source.repo)}"
            case _:
                path = Path(self.source.path)
                folder = path.parent if self.source.kind == "gguf" else path
                yield f"MODEL = {quoted(str(folder) if self.paths else folder.name)}"
        yield f"DEVICE = {quoted(self.plan.load.device)}"
        yield f"PROMPT = {quoted(self.work.prompt if self.work.prompt.strip() else STOCK_SENTENCE)}"
        yield f"BATCH_SIZE = {self.work.batch_size}"

    # --- the model --------------------------------------------------------------------------------

    def _load(self) -> Iterator[str]:
        if not self.cuda and self.checked.memory.weights < ONE_THREAD_BELOW_BYTES:
            yield "torch.set_num_threads(1)  # so few weights are not worth sharing between cores"
        yield from self.made.prepare
        yield from self._random() if self.source.kind == "random" else self._checkpoint()
        yield from self._loaded()
        yield from self.made.patch

    def _checkpoint(self) -> Iterator[str]:
        more: dict[str, str] = {}
        if self.source.kind == "gguf":
            more["gguf_file"] = quoted(Path(self.source.path).name)
        if self.source.revision:
            more["revision"] = quoted(self.source.revision)
        yield call("tokenizer = AutoTokenizer.from_pretrained", ["MODEL"], more)
        yield call(f"model = {self.auto}.from_pretrained", ["MODEL"], more | self.made.load)

    def _random(self) -> Iterator[str]:
        later = ("device_map", "quantization_config")
        keywords = {name: value for name, value in self.made.load.items() if name not in later}
        yield "config = AutoConfig.for_model(**CONFIG)"
        yield 'with torch.device("meta"):  # random weights: the text is noise, the times are real'
        yield "    " + call(f"model = {self.auto}.from_config", ["config"], keywords, 4)
        yield from self.made.drawn
        yield "model.to_empty(device=DEVICE)"
        yield f"torch.manual_seed({RANDOM_SEED})"
        yield "model.tie_weights()"
        yield "model.initialize_weights()"
        yield "model.tie_weights()"
        if "quantization_config" in self.made.load:
            yield "weights = {name: part for name, part in model.state_dict().items() if part.numel()}"
            parts = ["weights", *self.made.state]
            state = {"config": "config", "state_dict": " | ".join(parts)}
            yield call("model = type(model).from_pretrained", ["None"], state | self.made.load)
            yield f"del {', '.join(parts)}"
        yield "model.eval()"

    def _loaded(self) -> Iterator[str]:
        """Lines right after the model is there."""
        yield from ()

    # --- the prompt -------------------------------------------------------------------------------

    def _inputs(self) -> Iterator[str]:
        if self.source.kind == "random":
            if self.work.chat:
                raise InputError("Random weights have no chat template. Switch chat off.")
            yield "# one token a byte"
            yield "printable = [*range(33, 127), *range(161, 173), *range(174, 256)]"
            yield "order = printable + [byte for byte in range(256) if byte not in printable]"
            yield "ids = [order.index(byte) for byte in PROMPT.encode()]"
        elif self.work.chat:
            effort = {"reasoning_effort": quoted(self.work.reasoning_effort)} if self.work.reasoning_effort else {}
            yield 'messages = [{"role": "user", "content": PROMPT}]'
            keywords = {"add_generation_prompt": "True", "return_dict": "True", **effort}
            yield call("chat = tokenizer.apply_chat_template", ["messages"], keywords)
            yield 'ids = chat["input_ids"]'
        else:
            yield 'ids = tokenizer(PROMPT)["input_ids"]'
        if length := self.work.prompt_tokens:
            yield f"ids = (ids * ({length} // len(ids) + 1))[:{length}]"
        yield "input_ids = torch.tensor([ids] * BATCH_SIZE, device=DEVICE)"
        yield 'inputs = {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids)}'
        yield from self.made.inputs

    def _run(self) -> Iterator[str]:
        """Warm-up, timed run, report."""
        raise NotImplementedError


_LENGTH = 'MAX_LENGTH = inputs["input_ids"].shape[1] + MAX_NEW_TOKENS'


class _Decoder(_Printer):
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
        yield _LENGTH

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


class _Encoder(_Printer):
    """The whole prompt through the model, again and again."""

    auto = "AutoModel"

    def _settings(self) -> Iterator[str]:
        yield from super()._settings()
        yield f"PASSES = {self.work.max_new_tokens}"

    def _run(self) -> Iterator[str]:
        compiled = self.made.generate.get("compile_config")
        yield f"forward = model.get_compiled_call({compiled})" if compiled else "forward = model"
        yield 'for run in ("warm-up", "timed"):'
        yield "    latencies_s = []"
        yield "    for _ in range(PASSES):"
        if self.cuda:
            yield "        torch.cuda.synchronize()"
        yield "        begin_s = time.perf_counter()"
        yield "        with torch.inference_mode():"
        yield "            output = forward(**inputs)"
        if self.cuda:
            yield "        torch.cuda.synchronize()"
        yield "        latencies_s.append(time.perf_counter() - begin_s)"
        yield ""
        yield "print(output.last_hidden_state.shape)"
        yield 'print(f"median latency: {1000 * statistics.median(latencies_s):.2f} ms a pass")'
        yield 'print(f"speed: {PASSES / sum(latencies_s):.1f} passes/s")'
