"""A standalone script in the making: axes put their lines in, `backend.export` prints it.

Every expression is Python source for a script that needs nothing but torch and transformers (and the package that an
optimization itself needs); write texts and paths as `repr`. The script runs in this order, and a line may use what the
lines before it made:

    time, torch, DEVICE, PROMPT, MAX_NEW_TOKENS, BATCH_SIZE     always there
    functions, prepare, load -> model (and tokenizer, but not with random weights), patch
    inputs (a dict with `input_ids` and `attention_mask` of shape (B, P)), MAX_LENGTH (prompt and new tokens)
    then twice, as a warm-up and timed: cache -> cache, clock, decode or generate -> output (B, P + new)
    finish

`clock.put(tokens)` says that these tokens (B,) were made, once for each step and once before the first for the prompt,
as `generate` does for its `streamer`: a loop of one's own calls it too.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Script:
    """The parts of a script, each empty until an axis fills it.

    imports     whole import lines beside the usual ones; sorted and printed once each
    prepare     lines before the model is loaded
    load        keyword of `from_pretrained` -> expression; on a GPU `device_map` is there already, to be taken out
    drawn       lines for random weights, before their architecture has memory
    state       expressions of further weights by name, for random weights that are packed or unpacked
    patch       lines after the model is loaded and before anything runs
    inputs      lines after the prompt was tokenized
    cache       expression of a fresh `past_key_values`, "": generate makes its own; a static one is made once and reset
    generate    keyword of `model.generate` -> expression
    functions   whole functions and classes, printed before the main part
    decode      expression that makes the output ids in place of `model.generate(...)`, "": generate
    finish      lines after the timed run
    """

    imports: set[str] = field(default_factory=set)
    prepare: list[str] = field(default_factory=list)
    load: dict[str, str] = field(default_factory=dict)
    drawn: list[str] = field(default_factory=list)
    state: list[str] = field(default_factory=list)
    patch: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    cache: str = ""
    generate: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    decode: str = ""
    finish: list[str] = field(default_factory=list)
