"""The parts of a script in their order: head, settings, model, prompt; what is run in the end is the kind's own."""

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

LENGTH = 'MAX_LENGTH = inputs["input_ids"].shape[1] + MAX_NEW_TOKENS'
"""Left out where nothing uses it."""


class Printer:
    """Puts the parts of a script in their order; what is run in the end is up to the kind of model."""

    auto = ""
    classes: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()

    def __init__(self, checked: Checked, facts: ModelFacts, workload: Workload, made: Script, paths: bool) -> None:
        self.checked, self.facts, self.work, self.made, self.paths = checked, facts, workload, made, paths
        self.plan, self.source = checked.plan, checked.plan.load.source
        self.cuda = checked.plan.load.device == "cuda"
        self.chat = workload.chat and facts.kind == "decoder"  # an encoder answers nobody

    def text(self) -> str:
        """The whole file. What is used decides what is imported."""
        main = "\n".join([*self._load(), "", *self._inputs(), "", *self._run(), *self.made.finish])
        functions = [*self.functions, *self.made.functions]
        gap = "\n\n\n" if functions else "\n\n"
        body = gap.join(["\n".join(self._settings()), *functions, main])
        if "MAX_LENGTH" not in body.replace(LENGTH, ""):
            body = body.replace(f"{LENGTH}\n", "")
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
            part = "part.cpu()" if self.cuda else "part"  # packed from there as a checkpoint is
            yield f"weights = {{n: {part} for n, part in model.state_dict().items() if part.numel()}}"
            if self.cuda:
                yield 'model.to("meta")'
                yield "torch.cuda.empty_cache()"
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
            if self.chat:
                raise InputError("Random weights have no chat template. Switch chat off.")
            yield "# one token a byte"
            yield "printable = [*range(33, 127), *range(161, 173), *range(174, 256)]"
            yield "order = printable + [byte for byte in range(256) if byte not in printable]"
            yield "ids = [order.index(byte) for byte in PROMPT.encode()]"
        elif self.chat:
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
