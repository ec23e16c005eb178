"""What clients ask for: bodies of OpenAI's completions and chat completions, read and refused.

Fields are those of platform.openai.com/docs/api-reference; top_k, stop_token_ids, ignore_eos and return_token_ids are
vLLM's further ones (docs.vllm.ai, OpenAI-Compatible Server).
"""

from typing import Any, TypeVar

import msgspec

from tokendyno.backend.errors import UNDECODABLE, shown, unknown
from tokendyno.backend.library.model import MOST_LOGPROBS

MOST_STOPS, LONGEST_STOP = 16, 256
USUAL_COMPLETION = 16
"""max_tokens of a completion that names none, as OpenAI's; a chat then goes on up to `max_length`."""

HARMLESS = {
    *("user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"),
    *("parallel_tool_calls", "verbosity"),
}
"""Fields that change nothing in a text, or nothing without tools."""

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "length_penalty": (1,),
    "min_p": (0,),
    "min_tokens": (0,),
    "logit_bias": ({},),
    "use_beam_search": (False,),
    "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True,),
    "add_generation_prompt": (True,),
    "continue_final_message": (False,),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "chat_template_kwargs": ({},),
}
"""Fields of what cannot be done here that programs send all the same, with the values that ask for nothing."""

ROLES = ("system", "user", "assistant")


class Refused(Exception):
    """A request that gets an error: a sentence, its status, and what of it is at fault, in OpenAI's words."""

    def __init__(self, sentence: str, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        super().__init__(sentence)
        self.status, self.param, self.code = status, param, code


class StreamOptions(msgspec.Struct, forbid_unknown_fields=True):
    """Whether a last event tells the usage."""

    include_usage: bool = False
    include_obfuscation: bool = False


class Part(msgspec.Struct):
    """A part of a message; only parts of type "text" can be read."""

    type: str
    text: str = ""


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """A turn of a chat."""

    role: str
    content: str | list[Part]

    def words(self, place: str) -> str:
        """The text; parts are lines, as vLLM joins them."""
        if self.role not in ROLES:
            raise Refused(f"The role {shown(self.role)!r} is none of {', '.join(ROLES)}.", param=f"{place}.role")
        return self.content if isinstance(self.content, str) else "\n".join(part.text for part in self.content)


class TextRequest(msgspec.Struct, kw_only=True):
    """The fields of both kinds of requests."""

    model: str = ""
    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: str | list[str] = []
    stop_token_ids: list[int] = []
    ignore_eos: bool = False
    stream: bool = False
    stream_options: StreamOptions | None = None
    return_token_ids: bool = False
    reasoning_effort: str = ""

    @property
    def stops(self) -> list[str]:
        """The texts before which to end."""
        return [self.stop] if isinstance(self.stop, str) else self.stop

    @property
    def with_usage(self) -> bool:
        """Whether a stream tells the usage at its end."""
        return self.stream_options is not None and self.stream_options.include_usage

    def sampling(self) -> dict[str, Any]:
        """How tokens are chosen, as arguments of `Model.stream`. A greedy text is the same for each top_p, since the
        likeliest token is in every nucleus; without a seed each text is another."""
        greedy = self.temperature == 0
        return {
            "temperature": self.temperature,
            "top_p": 1.0 if greedy else self.top_p,
            "top_k": 0 if greedy else max(0, self.top_k),  # vLLM writes -1 for all tokens
            "seed": self.seed,
            "stop_ids": self.stop_token_ids,
            "ignore_eos": self.ignore_eos,
        }

    def check(self) -> None:
        """Refused where values contradict each other or are out of bounds that the library does not check."""
        if len(self.stops) > MOST_STOPS or not all(0 < len(stop) <= LONGEST_STOP for stop in self.stops):
            allowed = f"at most {MOST_STOPS} texts of 1 to {LONGEST_STOP} characters"
            raise Refused(f"stop must be {allowed}.", param="stop")
        for name in ("max_tokens", "max_completion_tokens"):
            if (number := getattr(self, name, None)) is not None and number < 1:
                raise Refused(f"{name} is {shown(number)}; it must be 1 or more.", param=name)
        if self.stream_options is not None and not self.stream:
            raise Refused(
                "stream_options are of streams. Set stream to true, or leave them out.", param="stream_options"
            )
        if self.top_k < -1:
            raise Refused(f"top_k is {shown(self.top_k)}; it must be 0 or more (0: all tokens).", param="top_k")


class Completion(TextRequest, kw_only=True):
    """A text to continue, as text or token ids. `logprobs`: how many of the likeliest tokens are told with each."""

    prompt: str | list[str | int | list[int]]
    logprobs: int | None = None

    @property
    def prompt_given(self) -> Any:
        """The prompt as the library takes it."""
        if isinstance(self.prompt, str):
            return self.prompt
        if len(self.prompt) == 1 and not isinstance(self.prompt[0], int):
            return self.prompt[0]
        if not all(isinstance(part, int) for part in self.prompt):
            raise Refused("This endpoint takes one prompt a request: a text, or token ids.", param="prompt")
        return self.prompt

    @property
    def most_new(self) -> int | None:
        """Tokens to generate at most; None: up to `max_length`."""
        return USUAL_COMPLETION if self.max_tokens is None else self.max_tokens

    @property
    def likely(self) -> int | None:
        """How many of the likeliest tokens are told with each; None: no log-probability either."""
        return self.logprobs


class Chat(TextRequest, kw_only=True):
    """A conversation. `logprobs`: whether they are told, with `top_logprobs` of the likeliest tokens."""

    messages: list[Message]
    max_completion_tokens: int | None = None
    logprobs: bool = False
    top_logprobs: int | None = None

    @property
    def prompt_given(self) -> Any:
        """The prompt as the library takes it."""
        if not self.messages:
            raise Refused("messages is empty. Give at least one, of the user.", param="messages")
        return [
            {"role": message.role, "content": message.words(f"messages[{at}]")}
            for at, message in enumerate(self.messages)
        ]

    @property
    def most_new(self) -> int | None:
        """Tokens to generate at most; None: up to `max_length`."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def likely(self) -> int | None:
        """How many of the likeliest tokens are told with each; None: no log-probability either."""
        return (self.top_logprobs or 0) if self.logprobs else None

    def check(self) -> None:
        super().check()
        if self.top_logprobs is not None and not self.logprobs:
            raise Refused("top_logprobs need logprobs. Set logprobs to true, or leave both out.", param="top_logprobs")
        if None not in (self.max_tokens, self.max_completion_tokens) and self.max_tokens != self.max_completion_tokens:
            raise Refused("max_tokens and max_completion_tokens differ. Give one of them.", param="max_tokens")
        for at, message in enumerate(self.messages):
            for part in message.content if isinstance(message.content, list) else ():
                if part.type != "text":
                    sentence = f"A part of type {shown(part.type)!r} cannot be read: this endpoint takes text."
                    raise Refused(sentence, param=f"messages[{at}].content")


A = TypeVar("A", Completion, Chat)


def read(body: bytes, kind: type[A]) -> A:
    """The request that a body holds. Refused where it is none, or asks for what cannot be done here."""
    try:
        fields = msgspec.json.decode(body)
    except UNDECODABLE as error:
        raise Refused(f"The body is not JSON ({shown(error)}).") from None
    if not isinstance(fields, dict):
        raise Refused("The body must be a JSON object.")
    try:
        fields = _without_nulls(fields)
        known = set(kind.__struct_fields__)
        for name, value in fields.items():
            if name in NEUTRAL and value in NEUTRAL[name]:
                continue
            if name in NEUTRAL:
                raise Refused(f"{name} = {shown(value)} is not supported here. Leave it out.", param=name)
            if name not in known | HARMLESS:
                raise Refused(str(unknown("field", name, known)), param=shown(name))
        request = msgspec.convert({name: value for name, value in fields.items() if name in known}, kind)
    except msgspec.ValidationError as error:
        fault, _, place = str(error).partition(" - at `$.")
        raise Refused(f"{fault}{f', in {place[:-1]}' if place else ''}.", param=place[:-1] or None) from None
    except RecursionError:
        raise Refused("The body is nested too deeply.") from None
    request.check()
    if request.likely is not None and not 0 <= request.likely <= MOST_LOGPROBS:
        field = "logprobs" if isinstance(request, Completion) else "top_logprobs"
        raise Refused(f"{field} is {shown(request.likely)}; it must be from 0 to {MOST_LOGPROBS}.", param=field)
    return request


def _without_nulls(value: Any) -> Any:
    """The same without fields that are null: clients write out what they leave open."""
    if isinstance(value, dict):
        return {name: _without_nulls(field) for name, field in value.items() if field is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
