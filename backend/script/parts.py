"""The parts of an exported script, filled in by the axes and printed by `tokendyno.backend.export`.

Every expression is Python source for a script that needs nothing but torch and transformers (and the package that an
optimization itself needs); write strings and paths as `repr`. The script runs in this order, and a line may use what
the lines before it defined:

    time, torch, DEVICE, PROMPT, MAX_NEW_TOKENS, BATCH_SIZE     always there
    definitions, prepare, load -> model, tokenizer, eos, pad; patch
    inputs (a dict with `input_ids` and `attention_mask` of shape (B, P)), MAX_LENGTH (prompt and new tokens)
    then twice, as warm-up and timed: cache -> cache, clock, decode or generate -> output (B, P + new)
    finish
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Script:
    """The parts of a script, each empty until an axis fills it.

    definitions  (file, name) of functions and classes of this package to print, with all that they need
    shown        keyword of `from_pretrained` -> what users pass for it, where the script calls a function instead
    empty        lines after a random model's architecture is built on the meta device, before it has memory
    state        expressions of further weights by name, for random weights that are quantized or dequantized
    cache        expression of a new `past_key_values`, "": generate makes its own; a static one is made once and reset
    forward      lines before an encoder's passes, which are calls of `forward` with `inputs`
    loop         expression of a `DecodeLoop` that generates in place of `model.generate`, "": generate
    """

    imports: set[str] = field(default_factory=set)
    definitions: list[tuple[str, str]] = field(default_factory=list)
    prepare: list[str] = field(default_factory=list)
    load: dict[str, str] = field(default_factory=dict)
    shown: dict[str, str] = field(default_factory=dict)
    empty: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    patch: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    cache: str = ""
    forward: list[str] = field(default_factory=list)
    generate: dict[str, str] = field(default_factory=dict)
    loop: str = ""
    finish: list[str] = field(default_factory=list)

    def define(self, file: str, *names: str) -> None:
        """Print these functions or classes of a file of this package ("worker/loop/loop.py") into the script."""
        self.definitions += [(file, name) for name in names]

    def prepared(self, file: str, call: str) -> None:
        """Print a function of that file, and this call of it before the load."""
        self.define(file, call.partition("(")[0])
        self.prepare.append(call)

    def patched(self, file: str, call: str, first: bool = False) -> None:
        """Print a function of that file, and this call of it after the load, behind the calls there or before them."""
        self.define(file, call.partition("(")[0])
        self.patch.insert(0 if first else len(self.patch), call)
