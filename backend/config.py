"""What a user asks for: an arm (`Config`) and the work it is given (`Workload`), as frozen values.

Both refuse nonsense when they are built, so that everything past this file may rely on them.
"""

import hashlib
import json
from dataclasses import dataclass

from backend.errors import InputError, unknown

MAX_NEW_TOKENS = 32_768
MAX_BATCH_SIZE = 1_024
MAX_PROMPT_BYTES = 1 << 20
MAX_REPEATS = 50
EFFORTS = ("low", "medium", "high")
STOCK_SENTENCE = "The quick brown fox jumps over the lazy dog. "
"""A synthetic prompt is this, repeated."""


@dataclass(frozen=True, slots=True)
class Config:
    """One arm: a model and, axis by axis, the choices that differ from the default.

    `choices` is sorted and leaves defaults out, so equal meaning is an equal value and an equal `id`.
    Build it with `backend.arms.parse_arm`, which knows the axes.
    """

    model: str
    choices: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """Twelve hex digits that stay the same for the same meaning."""
        text = json.dumps([self.model, self.choices], ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Workload:
    """The prompt and how it is continued.

    `prompt` is the text to continue; with `prompt_tokens` > 0 it is repeated or cut to exactly so many
    tokens (a synthetic prompt when `prompt` is empty). `temperature` 0 is greedy decoding.
    `top_k` 0 and `top_p` 1 leave nothing out of the distribution that is sampled from. `chat` puts the prompt into
    the model's chat template, with `reasoning_effort` (low, medium, high) where the template has it.
    With `ignore_eos` exactly `max_new_tokens` tokens are made, past every end-of-text token.
    """

    prompt: str = ""
    prompt_tokens: int = 0
    max_new_tokens: int = 256
    batch_size: int = 1
    temperature: float = 0.0
    seed: int = 0
    repeats: int = 1
    ignore_eos: bool = False
    top_k: int = 0
    top_p: float = 1.0
    chat: bool = False
    reasoning_effort: str = ""

    def __post_init__(self) -> None:
        _within("max_new_tokens", self.max_new_tokens, 1, MAX_NEW_TOKENS)
        _within("batch_size", self.batch_size, 1, MAX_BATCH_SIZE)
        _within("repeats", self.repeats, 1, MAX_REPEATS)
        _within("prompt_tokens", self.prompt_tokens, 0, 1_000_000)
        _within("seed", self.seed, 0, 2**63 - 1)
        if not 0.0 <= self.temperature <= 10.0:
            raise InputError(f"temperature is {self.temperature}; give 0 (greedy) to 10.")
        _within("top_k", self.top_k, 0, 1_000_000)
        if not 0.0 < self.top_p <= 1.0:
            raise InputError(f"top_p is {self.top_p}; give a share above 0 and up to 1 (1: nothing is left out).")
        if self.reasoning_effort and self.reasoning_effort not in EFFORTS:
            raise unknown("reasoning effort", self.reasoning_effort, EFFORTS)
        if self.reasoning_effort and not self.chat:
            raise InputError("A reasoning effort is a part of the chat template. Switch chat on as well.")
        if self.chat and self.prompt_tokens:
            raise InputError("A chat template adds tokens of its own, so a chat cannot be cut or repeated to a number "
                             "of prompt tokens. Leave one of the two out.")  # fmt: skip
        if not self.temperature and (self.top_k or self.top_p < 1):
            raise InputError("top_k and top_p choose among tokens that are sampled, and at temperature 0 none is. Give "
                             "a temperature, or leave them out.")  # fmt: skip
        if not self.prompt.strip() and not self.prompt_tokens:
            raise InputError("The prompt is empty. Write some text to continue, or ask for a synthetic prompt "
                             "with a number of prompt tokens (--prompt-tokens).")  # fmt: skip
        try:
            size_bytes = len(self.prompt.encode())
        except UnicodeEncodeError:
            raise InputError("The prompt holds bytes that are not UTF-8 text. Save or type it as UTF-8.") from None
        if size_bytes > MAX_PROMPT_BYTES:
            raise InputError(f"The prompt has {size_bytes:,} bytes; at most {MAX_PROMPT_BYTES:,} are taken. "
                             "Shorten it.")  # fmt: skip


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise InputError(f"{name} is {value}; give a whole number from {low:,} to {high:,}.")
