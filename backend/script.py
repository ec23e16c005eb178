"""A standalone script in the making: axes put their lines in, `backend.export` prints it.

Every expression is Python source for a script that needs nothing but torch and transformers (and the package that an
optimization itself needs). Names that a line may use: `model`, `tokenizer`, `inputs` (a dict with `input_ids` and
`attention_mask` of shape (B, P)), `MAX_NEW_TOKENS`, `MAX_LENGTH` (prompt and new tokens), `DEVICE`.
"""

from dataclasses import dataclass, field


@dataclass(slots=True)
class Script:
    """The parts of a script, each empty until an axis fills it.

    imports     whole import lines beside the usual ones; sorted and printed once each
    prepare     lines before the model is loaded
    load        keyword of `from_pretrained` -> expression
    patch       lines after the model is loaded and before anything runs
    inputs      lines after the prompt was tokenized
    cache       expression of a fresh `past_key_values`, "" : generate makes its own
    generate    keyword of `model.generate` -> expression
    functions   whole functions and classes, printed before the main part
    decode      expression that makes the output ids in place of `model.generate(...)`, "": generate
    """

    imports: set[str] = field(default_factory=set)
    prepare: list[str] = field(default_factory=list)
    load: dict[str, str] = field(default_factory=dict)
    patch: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    cache: str = ""
    generate: dict[str, str] = field(default_factory=dict)
    functions: list[str] = field(default_factory=list)
    decode: str = ""
