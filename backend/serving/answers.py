"""What clients are answered: OpenAI's objects, whole or as server-sent events."""

import os
import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tokendyno.backend.library.tokens import Token
from tokendyno.backend.serving.schema import Chat, Completion, Refused
from tokendyno.backend.serving.stream import Generation, Piece

LEAST_LOGPROB = -9999.0
"""In place of minus infinity, for which JSON has no number; vLLM writes the same."""
DONE = b"data: [DONE]\n\n"


class Usage(msgspec.Struct):
    """Tokens of a request."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class CompletionLogprobs(msgspec.Struct):
    """A list for each: the tokens' texts, their log-probabilities, those of the likeliest tokens in their place with
    their own, and where each text begins."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class ChatLogprob(msgspec.Struct):
    """A token. `bytes`: null where it is a part of a character."""

    token: str
    logprob: float
    bytes: list[int] | None
    top_logprobs: "list[ChatLogprob] | UnsetType" = UNSET


class ChatLogprobs(msgspec.Struct):
    """Of each token."""

    content: list[ChatLogprob]
    refusal: None = None


class ChatText(msgspec.Struct):
    """A message, or what it grows by."""

    content: str
    role: str | UnsetType = UNSET


class Choice(msgspec.Struct):
    """The one text of an answer: `text` of completions, `message` or `delta` of chats."""

    finish_reason: str | None
    logprobs: CompletionLogprobs | ChatLogprobs | None
    index: int = 0
    text: str | UnsetType = UNSET
    message: ChatText | UnsetType = UNSET
    delta: ChatText | UnsetType = UNSET
    token_ids: list[int] | UnsetType = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET


class Answer(msgspec.Struct):
    """A whole answer, or an event of a stream."""

    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | UnsetType | None = UNSET
    prompt_token_ids: list[int] | UnsetType = UNSET


class Writer:
    """Writes the answers to one request. `model`: its name here."""

    def __init__(self, request: Completion | Chat, model: str, generation: Generation, tokenizer: Any) -> None:
        self._request, self._model, self._generation, self._tokenizer = request, model, generation, tokenizer
        self._chat = isinstance(request, Chat)
        self._id = f"{'chatcmpl' if self._chat else 'cmpl'}-{os.urandom(12).hex()}"
        self._created, self._written, self._length = int(time.time()), 0, 0

    async def whole(self) -> bytes:
        """The answer once its text is complete."""
        pieces = [piece async for piece in self._generation.pieces()]
        tokens = [token for piece in pieces for token in piece.tokens]
        text = Piece("".join(piece.text for piece in pieces), tokens, pieces[-1].finish)
        answer = self._answer(self._choice(text), "chat.completion")
        answer.usage = self._usage()
        return msgspec.json.encode(answer)

    async def events(self) -> AsyncIterator[bytes]:
        """The answer as it comes."""
        async for piece in self._generation.pieces():
            yield self._event(self._choice(piece, True))
        if self._request.with_usage:
            yield self._event(None, self._usage())
        yield DONE

    def _event(self, choice: Choice | None, usage: Usage | None = None) -> bytes:
        answer = self._answer(choice, "chat.completion.chunk")
        if self._request.with_usage:
            answer.usage = usage
        return event(answer)

    def _answer(self, choice: Choice | None, chat_object: str) -> Answer:
        kind = chat_object if self._chat else "text_completion"
        answer = Answer(self._id, kind, self._created, self._model, [choice] if choice else [])
        if self._request.return_token_ids and choice and not self._written:
            (answer if self._chat else choice).prompt_token_ids = self._generation.prompt_ids
        self._written += 1
        return answer

    def _choice(self, piece: Piece, delta: bool = False) -> Choice:
        choice = Choice(piece.finish, None)
        if self._request.likely is not None:
            choice.logprobs = self._chat_logprobs(piece) if self._chat else self._logprobs(piece)
        if self._request.return_token_ids:
            choice.token_ids = [token.id for token in piece.tokens]
        if not self._chat:
            choice.text = piece.text
        elif delta:
            choice.delta = ChatText(piece.text, UNSET if self._written else "assistant")
        else:
            choice.message = ChatText(piece.text, "assistant")
        self._length += len(piece.text)
        return choice

    def _usage(self) -> Usage:
        prompt, new = len(self._generation.prompt_ids), self._generation.tokens
        return Usage(prompt, new, prompt + new)

    def _logprobs(self, piece: Piece) -> CompletionLogprobs:
        logprobs, offset, end = CompletionLogprobs([], [], [], []), self._length, self._length + len(piece.text)
        for token in piece.tokens:
            text, logprob = self._text(token), _finite(token.logprob)
            top: dict[str, float] = {}
            for likely in token.top:
                top.setdefault(likely.text, _finite(likely.logprob))  # parts of characters may read alike
            top.setdefault(text, logprob)
            logprobs.tokens.append(text)
            logprobs.token_logprobs.append(logprob)
            logprobs.top_logprobs.append(top)
            logprobs.text_offset.append(min(offset, end))
            offset += len(token.text)
        return logprobs

    def _chat_logprobs(self, piece: Piece) -> ChatLogprobs:
        content = []
        for token in piece.tokens:
            content.append(_chat_logprob(self._text(token), token.logprob))
            content[-1].top_logprobs = [_chat_logprob(likely.text, likely.logprob) for likely in token.top]
        return ChatLogprobs(content)

    def _text(self, token: Token) -> str:
        return str(self._tokenizer.decode([token.id]))


def _chat_logprob(text: str, logprob: float | None) -> ChatLogprob:
    return ChatLogprob(text, _finite(logprob), None if "\ufffd" in text else list(text.encode()))


def _finite(logprob: float | None) -> float:
    return LEAST_LOGPROB if logprob is None else max(LEAST_LOGPROB, logprob)


# --- errors ---------------------------------------------------------------------------------------

TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def error_answer(refused: Refused) -> dict[str, dict[str, str | None]]:
    """The body of an error in OpenAI's form: in place of a text, or behind its beginning."""
    kind = TYPES.get(refused.status, "server_error" if refused.status >= 500 else "invalid_request_error")
    return {"error": {"message": str(refused), "type": kind, "param": refused.param, "code": refused.code}}


def event(value: Any) -> bytes:
    """A server-sent event."""
    return b"data: %b\n\n" % msgspec.json.encode(value)
