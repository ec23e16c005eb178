"""An arm in a few lines, for somebody's own code: transformers' own calls where they do all that the arm does, else
this program as a library."""

import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from tokendyno.backend.arms.arguments import continuous_settings, keeps_uncompiled, parts_of, sampling
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import Workload
from tokendyno.backend.export.printer import Printer
from tokendyno.backend.export.script import script
from tokendyno.backend.models import ModelFacts, catalogue
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import WIDTH, call, comment, imports, quoted, same_quotes

MOST_LINES = 15
GENERATE = ("torch.inference_mode()(model.generate)", "model.generate")
"""The first as in a run: small models are a tenth faster than under no_grad, which is generate's own. It needs more
room."""
_INDENTED: Any = {"initial_indent": " " * 4, "subsequent_indent": " " * 4, "break_long_words": False}


def short_script(checked: Checked, facts: ModelFacts, workload: Workload, paths: bool = True) -> str:
    """The text, at most `MOST_LINES` lines, else the standalone script. `checked` must be runnable."""
    parts = parts_of(checked)
    if any(checked.requested[axis.name] != axis.default for axis in all_axes() if axis.many_requests):
        continuous = checked.plan.generate.batch.continuous and _suffices(parts, checked)
        return (_Continuous if continuous else _Requests)(checked, facts, workload, parts, paths).text()
    if _suffices(parts, checked):
        own = _Transformers(checked, facts, workload, parts, paths)
        for own.generate in GENERATE:
            text = own.text()
            if text.count("\n") <= MOST_LINES + len(comment(checked.assumed)):
                return text
    if facts.kind == "encoder" or checked.plan.load.parallel.ranks > 1:
        return script(checked, facts, workload, paths)
    return _Library(checked, facts, workload, parts, paths).text()


def _suffices(parts: Script, checked: Checked) -> bool:
    """Whether arguments of transformers' own calls are all that there is."""
    own = [*parts.definitions, *parts.inputs, *parts.forward, *parts.empty, *parts.state, *parts.finish, parts.loop]
    return not any(own) and checked.plan.load.source.kind != "random" and checked.plan.load.parallel.ranks == 1


class _Short(Printer):
    """What both ways share: the prompt as it is given."""

    def _title(self, says: str) -> list[str]:
        return comment(f"{says} {', '.join(self._versions())}. {self.checked.assumed}".rstrip())

    @property
    def _chat(self) -> str:
        return self._messages(quoted(self.work.system), self._prompt)


class _Transformers(_Short):
    """The short script of an arm that is transformers' own calls. `generate`: one of `GENERATE`."""

    generate = GENERATE[0]

    def text(self) -> str:
        """The whole file. Only what is used is imported."""
        encoder = self.facts.kind == "encoder"
        self.auto = "AutoModel" if encoder and not self.source.forward else "AutoModelForCausalLM"
        where = next(line for line in self._settings() if line.startswith("MODEL"))
        load = [line for line in self._load() if line]
        body = "\n".join([where, *load, *self._inputs(), *(self._passes() if encoder else self._generation())])
        body = body.replace("DEVICE", quoted(self.plan.load.device))
        names = [self.auto, "AutoConfig", "AutoTokenizer", "ContinuousBatchingConfig", "GenerationConfig"]
        wanted = [f"from transformers import {name}" for name in names if re.search(rf"\b{name}\b", body)]
        torch = ["import torch"] if re.search(r"\btorch\.", body) else []
        lines = [line for line in imports([*torch, *wanted, *self.parts.imports]) if line]
        return same_quotes("\n".join([*self._title("This arm is transformers' own calls."), *lines, body, ""]))

    def _loaded(self) -> Iterator[str]:
        if self.facts.kind == "decoder":
            ends = "" if self.work.ignore_eos else "eos_token_id=model.generation_config.eos_token_id"
            yield f"model.generation_config = GenerationConfig({ends})  # its own may sample"

    def _inputs(self) -> Iterator[str]:
        rows = self.work.batch_size
        if self.chat:
            keywords = {"add_generation_prompt": "True", "return_dict": "True", "return_tensors": '"pt"'}
            chats = f"[{self._chat}] * {rows}" if rows > 1 else self._chat
            rendered = call("inputs = tokenizer.apply_chat_template", [chats], keywords | self._reasoning())
            yield f"{rendered}.to(model.device)"
            return
        if tokens := self.work.prompt_tokens:
            yield f'ids = torch.tensor([tokenizer({self._prompt})["input_ids"]] * {rows}, device=model.device)'
            yield f"ids = ids.repeat(1, {tokens} // ids.shape[1] + 1)[:, :{tokens}]"
            yield 'inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}'
            return
        text = f"[{self._prompt}] * {rows}" if rows > 1 else self._prompt
        yield f'inputs = tokenizer({text}, return_tensors="pt").to(model.device)'

    def _passes(self) -> Iterator[str]:
        yield "with torch.inference_mode():"
        shown = "use_cache=False).logits" if self.source.forward else "last_hidden_state"
        yield f"    print(model(**inputs{', ' if self.source.forward else ').'}{shown}.shape)"

    def _generation(self) -> Iterator[str]:
        work = self.work
        keywords = {"max_new_tokens": str(work.max_new_tokens)} | sampling(work)
        if work.temperature > 0:
            yield f"torch.manual_seed({work.seed})"
        if self.parts.cache:
            length = f'inputs["input_ids"].shape[1] + {work.max_new_tokens}'
            yield f"cache = {self.parts.cache.replace('MAX_LENGTH', length)}"
            keywords["past_key_values"] = "cache"
        if keeps_uncompiled(self.plan):
            keywords["disable_compile"] = "True"
        generate = dict(self.parts.generate)
        if not self.plan.generate.cache.fixed and (compiled := generate.pop("compile_config", None)):
            yield f"model.compile(**{compiled}.to_dict())"
        yield call(f"output = {self.generate}", ["**inputs"], keywords | generate)
        yield 'print(tokenizer.decode(output[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True))'


class _Continuous(_Transformers):
    """Many requests by transformers' continuous batching."""

    def _loaded(self) -> Iterator[str]:
        return iter(())

    def _inputs(self) -> Iterator[str]:
        yield f'prompts = [tokenizer(text)["input_ids"] for text in [{self._prompt}]]'

    def _generation(self) -> Iterator[str]:
        listed = ", ".join(f"{name}={value}" for name, value in continuous_settings(self.plan.generate.batch).items())
        yield f"batching = ContinuousBatchingConfig(\n{textwrap.fill(listed, WIDTH, **_INDENTED)}\n)"
        ends = "-1" if self.work.ignore_eos else "model.generation_config.eos_token_id"
        keywords = {"max_new_tokens": str(self.work.max_new_tokens), "do_sample": "False", "eos_token_id": ends}
        yield call("settings = GenerationConfig", [], keywords)
        yield "for output in model.generate_batch(prompts, settings, batching).values():"
        yield "    print(tokenizer.decode(output.generated_tokens, skip_special_tokens=True))"


INSTALL = "Needs tokendyno, which is on no package index: pip install -e . in a clone of its repository."
"""How what `import tokendyno` takes is installed, as README.md says."""


class _Library(_Short):
    """The short script of an arm that takes tokendyno as a library."""

    def text(self) -> str:
        """The whole file."""
        says = "This arm is more than transformers' own calls."
        if self.work.batch_size > 1:
            says += f" This reads the prompt once, and the run read it in {self.work.batch_size} rows."
            says += " Only the standalone script samples the same texts." if self.work.temperature else ""
        body = [self._loading_call(), *self._generation(), "print(generated.text)"]
        return same_quotes("\n".join([*self._title(f"{INSTALL} {says}"), "import tokendyno as td", "", *body, ""]))

    def _loading_call(self, left_out: Collection[str] = (), *keywords: str) -> str:
        """`td.load` of the arm, without the axes that are left out."""
        defaults = {axis.name: axis.default for axis in all_axes()}
        changes = {axis: choice for axis, choice in self.checked.requested.items() if defaults[axis] != choice}
        arm = [f"{axis}={choice}" for axis, choice in changes.items() if axis not in left_out]
        return _on_lines("model = td.load", [quoted(self._model()), *([_literal(arm)] if arm else []), *keywords])

    def _model(self) -> str:
        known = {entry.name for entry in catalogue()}
        if self.source.kind in ("folder", "gguf") and self.facts.model not in known and self.paths:
            return self.source.path
        return self.facts.model

    def _generation(self) -> Iterator[str]:
        work = self.work
        keywords = {"max_new_tokens": str(work.max_new_tokens)}
        prompt = self._chat if self.chat else self._prompt
        if self.chat and work.reasoning_effort:
            keywords["reasoning"] = quoted(work.reasoning_effort)
        if work.temperature > 0:
            keywords |= {"temperature": repr(float(work.temperature)), "seed": str(work.seed)}
            keywords |= {"top_k": str(work.top_k)} if work.top_k else {}
            keywords |= {"top_p": repr(float(work.top_p))} if work.top_p < 1 else {}
        if work.ignore_eos:
            keywords["ignore_eos"] = "True"
        if tokens := work.prompt_tokens:
            yield f'ids = model.tokenizer({prompt})["input_ids"]'
            prompt = f"(ids * ({tokens} // len(ids) + 1))[:{tokens}]"
        yield call("generated = model.generate", [prompt], keywords)


class _Requests(_Library):
    """Many requests by tokendyno as a library, which has continuous batching, and no static batches."""

    def text(self) -> str:
        """The whole file."""
        says, left_out = "This arm serves requests as they come.", list[str]()
        if not self.plan.generate.batch.continuous:
            left_out = [axis.name for axis in all_axes() if axis.many_requests]
            says = "Static batches are run by `tokendyno batch`; this reads one prompt after the other."
        length = self.work.prompt_tokens + self.work.max_new_tokens
        keywords = {"max_new_tokens": str(self.work.max_new_tokens)}
        keywords |= {"ignore_eos": "True"} if self.work.ignore_eos else {}
        generate = f"lambda prompt: {call('model.generate', ['prompt'], keywords)}"
        body = [
            self._loading_call(left_out, *([f"max_length={length}"] if self.work.prompt_tokens else [])),
            f"prompts = [{self._prompt}]  # texts, lists of token ids, or chats",
            "with ThreadPoolExecutor(model.at_once) as pool:",
            f"    for generated in pool.map({generate}, prompts):",
            "        print(generated.text)",
        ]
        lines = ["from concurrent.futures import ThreadPoolExecutor", "", "import tokendyno as td", ""]
        return same_quotes("\n".join([*self._title(f"{INSTALL} {says}"), *lines, *body, ""]))


def _literal(choices: Sequence[str]) -> str:
    """An arm as a string, in two where one would be longer than a line."""
    whole = quoted(",".join(choices))
    if len(whole) < WIDTH - 8:
        return whole
    half = len(choices) // 2
    return f"{quoted(','.join(choices[:half]) + ',')}\n    {quoted(','.join(choices[half:]))}"


def _on_lines(start: str, arguments: Sequence[str]) -> str:
    """The call on one line; one that is too long with an argument a line."""
    line = f"{start}({', '.join(arguments)})"
    return line if len(line) <= WIDTH else f"{start}(\n" + "".join(f"    {text},\n" for text in arguments) + ")"
