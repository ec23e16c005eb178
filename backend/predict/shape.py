"""A run of a model, its cache, and the passes in which its prompt is read: what bytes of memory depend on."""

from dataclasses import dataclass, replace

from tokendyno.backend.models import ModelFacts
from tokendyno.backend.plan import UNWINDOWED, CacheKind
from tokendyno.backend.predict.kv import KvBytes, kv_bytes
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.weights import itemsize, resolved_dtype


def attention_of(facts: ModelFacts, setup: Setup) -> str:
    """The attention in use: the one asked for, else sdpa, but eager with sinks and where there is no sdpa."""
    if setup.attention is not None:
        return setup.attention
    return "eager" if facts.lacks_sdpa else "sdpa"


@dataclass(frozen=True, slots=True)
class Shape:
    """A run of a model: `batch` prompts of `prompt` tokens, `new` tokens after each of them; of an encoder a pass over
    `prompt` tokens."""

    facts: ModelFacts
    setup: Setup
    prompt: int
    new: int
    batch: int = 1

    @property
    def encoder(self) -> bool:
        return self.facts.kind == "encoder"

    @property
    def size(self) -> int:
        """Bytes of a number."""
        return itemsize(self.facts, self.setup.dtype)

    @property
    def float16(self) -> bool:
        return resolved_dtype(self.facts, self.setup.dtype) == "float16"

    @property
    def attention(self) -> str:
        return attention_of(self.facts, self.setup)

    @property
    def slots(self) -> int:
        """Tokens that a static cache has room for."""
        return self.setup.max_places if self.setup.max_places is not None else self.prompt + self.new

    @property
    def last(self) -> int:
        """Tokens that the last step attends to: the newest one is not in the cache yet."""
        return min(self.slots, self.prompt if self.encoder else self.prompt + self.new - 1)

    @property
    def chunked(self) -> bool:
        """Whether the prompt is read in several passes."""
        return not self.encoder and 0 < self.setup.chunk < self.prompt

    def kv(self, length: int, prompt: int | None = None, cache: CacheKind | None = None) -> KvBytes:
        """The KV cache after `length` tokens; `prompt`: how many of them came at once."""
        return kv_bytes(self.facts, cache or self.setup.cache, length, self.batch, self.size, self.slots, prompt)

    def layer_bytes(self, length: int) -> int:
        """Keys and values of `length` tokens in a layer without a window."""
        return self.kv(length, cache=UNWINDOWED).total // self.facts.layers

    def passes(self) -> list["Pass"]:
        """The passes of which one takes the most memory: the only one, or the last full chunk and what is left after
        it."""
        if not self.chunked:
            return [Pass(self, self.prompt, self.prompt)]
        chunk, rest = self.setup.chunk, self.prompt % self.setup.chunk
        ends = {self.prompt - rest: chunk, self.prompt: rest or chunk}  # tokens read by then -> of the last pass
        return [Pass(self, tokens, end) for end, tokens in ends.items()]


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass over `tokens` of the prompt, of which `end` have been read after it."""

    shape: Shape
    tokens: int
    end: int

    @property
    def attended(self) -> int:
        """Keys of a row that a chunk attends to; 0: the prompt is read at once."""
        facts, cache = self.shape.facts, self.shape.setup.cache
        if not self.shape.chunked:
            return 0
        attended = self.end if cache.grows else self.shape.slots
        if facts.window and not facts.full_layers and cache.windowed:
            attended = min(attended, facts.window - 1 + self.tokens)
        return attended

    @property
    def keys(self) -> int:
        """Keys of a row that it attends to."""
        return self.attended or self.tokens

    @property
    def grown(self) -> int:
        """Bytes of a layer's keys that a growing cache held before: the longer tensor is made before they are freed."""
        shape, facts = self.shape, self.shape.facts
        if not shape.chunked or not shape.setup.cache.grows:
            return 0
        return (self.attended - self.tokens) * shape.batch * facts.kv_heads * facts.head_dim * shape.size

    @property
    def masked(self) -> bool:
        """Whether a mask is built, and keys and values are repeated per query head. That of a chunk behind others is
        never a plain causal one, but flash kernels need none."""
        facts = self.shape.facts
        windowed = facts.window is not None and self.tokens > facts.window and "sliding" in facts.layer_kinds
        return self.shape.setup.padded or windowed or (self.attended > 0 and "flash" not in self.shape.attention)

    @property
    def copied(self) -> bool:
        """Whether keys and values are copied for each query head: `sdpa-gqa` copies none where it may take a chunk
        (worker/patch/attention.py)."""
        shape, setup = self.shape, self.shape.setup
        flashes = shape.size == 2 and not setup.padded and not shape.facts.sliding_layers
        return not (self.attended and shape.attention == "sdpa-gqa" and (flashes or not setup.cuda))

    @property
    def kv(self) -> KvBytes:
        """The cache after this pass; a growing window is a view of all keys that the pass attended to."""
        shape, facts, cache = self.shape, self.shape.facts, self.shape.setup.cache
        if not cache.grows:
            return shape.kv(min(self.end, shape.slots))
        if not cache.windowed:
            return shape.kv(self.end, prompt=self.end)
        whole = shape.kv(self.end, cache=UNWINDOWED)
        if facts.window is None or self.tokens == self.end:
            return whole
        attended = shape.kv(min(self.end, facts.window - 1 + self.tokens), cache=UNWINDOWED)
        return replace(whole, sliding=attended.sliding)
