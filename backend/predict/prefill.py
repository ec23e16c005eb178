"""The passes in which a prompt is read, whole or in chunks: what each takes, and what the cache holds after it."""

from dataclasses import dataclass, replace

from tokendyno.backend.models import ModelFacts
from tokendyno.backend.plan import UNWINDOWED
from tokendyno.backend.predict.kv import KvBytes, kv_bytes
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.weights import resolved_dtype
from tokendyno.backend.predict.workspace import Work, prefill_bytes


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over a part of the prompt.

    attended  keys of a row that it attends to; 0: its own tokens
    grown     bytes of a layer's keys that a growing cache held before: the longer tensor is made before they are freed
    """

    tokens: int
    kv: KvBytes
    attended: int = 0
    grown: int = 0


def passes(facts: ModelFacts, setup: Setup, length: int, batch: int, size: int, slots: int) -> list[Pass]:
    """The passes of which one takes the most memory: the only one, or the last full chunk and what is left after it."""
    if facts.kind == "encoder" or not 0 < setup.chunk < length:
        return [Pass(length, _held(facts, setup, length, length, batch, size, slots))]
    rest = length % setup.chunk
    ends = {length - rest: setup.chunk, length: rest or setup.chunk}  # tokens read by then -> of the last pass
    return [_chunk(facts, setup, end, tokens, batch, size, slots) for end, tokens in ends.items()]


def pass_bytes(facts: ModelFacts, setup: Setup, batch: int, read: Pass, size: int, attention: str) -> int:
    """Temporary tensors of a pass. The mask of a chunk behind others is never a plain causal one, but flash kernels
    need none, and `sdpa-gqa` copies nothing for it where it may take one."""
    windowed = facts.window is not None and read.tokens > facts.window and "sliding" in facts.layer_kinds
    masked = setup.padded or windowed or (read.attended > 0 and "flash" not in attention)
    flashes = size == 2 and not setup.padded and not facts.sliding_layers  # worker/patch/attention.py: grouped_mask
    copied = not (read.attended and attention == "sdpa-gqa" and (flashes or not setup.cuda))
    work = Work(
        batch,
        read.tokens,
        size,
        attention,
        setup.experts or "grouped_mm",
        masked,
        setup.tensor_parallel,
        setup.expert_parallel,
        not setup.cuda,
        read.attended,
        read.grown,
        copied,
        resolved_dtype(facts, setup.dtype) == "float16",
    )
    return prefill_bytes(facts, work)


def _chunk(facts: ModelFacts, setup: Setup, end: int, tokens: int, batch: int, size: int, slots: int) -> Pass:
    window = facts.window if facts.window and not facts.full_layers and setup.cache.windowed else None
    attended = end if setup.cache.grows else slots
    if window is not None:
        attended = min(attended, window - 1 + tokens)
    grown = (attended - tokens) * batch * facts.kv_heads * facts.head_dim * size if setup.cache.grows else 0
    return Pass(tokens, _held(facts, setup, end, tokens, batch, size, slots), attended, grown)


def _held(facts: ModelFacts, setup: Setup, end: int, tokens: int, batch: int, size: int, slots: int) -> KvBytes:
    """Bytes of the cache after `end` tokens; a growing window is a view of all keys that the last pass attended to."""
    if not setup.cache.grows:
        return kv_bytes(facts, setup.cache, min(end, slots), batch, size, slots)
    if not setup.cache.windowed:
        return kv_bytes(facts, setup.cache, end, batch, size, prompt_length=end)
    every = kv_bytes(facts, UNWINDOWED, end, batch, size)
    if facts.window is None or tokens == end:
        return every
    seen = kv_bytes(facts, UNWINDOWED, min(end, facts.window - 1 + tokens), batch, size)
    return replace(every, sliding=seen.sliding)
