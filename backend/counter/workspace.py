"""How much memory a pass over a prompt takes beside weights and cache. The model's own code runs on fake CPU tensors,
which take no memory, so that torch chooses the operators of a real pass."""

import contextlib
import copy
import time
import weakref
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import AutoModel, AutoModelForCausalLM, DynamicCache
from transformers.initialization import no_init_weights

LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers", "encoder_layers")
LENGTHS = ((256, 512), (32, 64))
"""Pairs of prompt lengths in tokens; the short pair is for models that read them token by token."""
SECONDS = 3.0
"""Processor time for the passes in one dtype over prompts of one pair of lengths."""
DTYPES = (torch.bfloat16, torch.float32)
FEW_LAYERS = 8
"""Enough for one layer of each kind; the temporary tensors of a layer are gone before the next."""


class Live(TorchDispatchMode):  # type: ignore[misc]
    """While entered, counts the bytes of storages that operators make, until the last tensor on them is gone: `now` and
    at the `peak`. block: bytes that an allocator rounds up to; seconds: processor time before a TimeoutError."""

    def __init__(self, block: int = 1, seconds: float = float("inf")) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._seen: dict[int, int] = {}
        self._block, self._until_s = block, time.process_time() + seconds

    def track(self, tensor: Any) -> None:
        """Count the storage of a tensor, if it is new."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._seen:
            self._seen[key] = -(-storage.nbytes() // self._block) * self._block
            self.now += self._seen[key]
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._drop, key)

    def _drop(self, key: int) -> None:
        self.now -= self._seen.pop(key, 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if time.process_time() > self._until_s:
            raise TimeoutError("counting live tensors took too long")
        if func is torch.ops.aten.dropout.default and not args[2]:  # a fake tensor would be cloned
            return args[0]
        if func is torch.ops.aten.softmax.int:  # whole in inference mode: its float32 copy would not be seen
            with self:
                return func.decompose(*args, **(kwargs or {}))
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.track(leaf)
        return out


def count_workspace(config: Any, encoder: bool) -> dict[str, list[float]]:
    """By dtype, what a pass over B prompts of S tokens takes: factors, in bytes, of S, of B S, of S^2 and of B S^2.
    Without a dtype whose pass depends on values, as a loop over experts does, or takes too long."""
    with contextlib.suppress(TimeoutError):
        return _counted(shortened(config), encoder) or _counted(config, encoder)
    return {}


def shortened(config: Any) -> Any:
    """The same model with a few layers."""
    small = copy.deepcopy(config)
    text = small.get_text_config(decoder=True)
    for name in LAYERS:
        layers = vars(text).get(name)
        if isinstance(layers, int) and layers > FEW_LAYERS:
            for field, value in vars(text).items():
                if isinstance(value, list) and len(value) == layers:
                    setattr(text, field, value[:FEW_LAYERS])
            setattr(text, name, FEW_LAYERS)
    if getattr(text, "num_kv_shared_layers", 0):  # the last layers, which read what earlier ones cached
        text.num_kv_shared_layers = min(text.num_kv_shared_layers, FEW_LAYERS // 4)
    return small


def _counted(config: Any, encoder: bool) -> dict[str, list[float]]:
    factors: dict[str, list[float]] = {}
    lengths = list(LENGTHS)
    for dtype in DTYPES:
        while lengths:
            try:
                factors[str(dtype).removeprefix("torch.")] = _factors(config, encoder, dtype, lengths[0])
                break
            except TimeoutError:
                lengths.pop(0)
                if not lengths and not factors:
                    raise
            except Exception:  # of any model's code
                break
    return factors


def _factors(config: Any, encoder: bool, dtype: torch.dtype, lengths: tuple[int, int]) -> list[float]:
    auto = AutoModel if encoder else AutoModelForCausalLM
    with FakeTensorMode(allow_non_fake_inputs=True), torch.inference_mode():
        with no_init_weights():
            model = auto.from_config(config, dtype=dtype, trust_remote_code=False).eval()
        model.tie_weights()
        live = Live(seconds=SECONDS)
        for tensor in (*model.parameters(), *model.buffers()):
            live.track(tensor)
        with live:
            peaks = {(rows, tokens): _pass(model, live, encoder, rows, tokens) for rows in (1, 2) for tokens in lengths}
    return fitted(peaks, lengths)


def _pass(model: Any, live: Live, encoder: bool, rows: int, tokens: int) -> int:
    """The most bytes that a pass takes beside weights and cache."""
    before = live.now
    ids = torch.zeros(rows, tokens, dtype=torch.long)
    live.peak = live.now
    if encoder:
        model(input_ids=ids, attention_mask=torch.ones(rows, tokens, dtype=torch.long))
        return live.peak - before
    cache = DynamicCache(config=model.config)
    out = model(
        input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1, position_ids=torch.arange(tokens)[None]
    )
    scores = out.logits[:, -1, :].to(torch.float32, copy=True)
    peak = live.peak
    del out, scores, ids
    return peak - live.now  # the cache is still alive


def fitted(peaks: dict[tuple[int, int], int], lengths: tuple[int, int]) -> list[float]:
    """The factors of `count_workspace`, none negative, from the bytes of four passes by (rows 1 and 2, tokens)."""
    by_rows = {}
    short, long = lengths
    for rows in (1, 2):
        square = max(0.0, (peaks[rows, long] / long - peaks[rows, short] / short) / (long - short))
        by_rows[rows] = peaks[rows, long] / long - square * long, square
    (line, square), (line_2, square_2) = by_rows[1], by_rows[2]
    of_rows, of_row_squares = max(0.0, line_2 - line), max(0.0, square_2 - square)
    return [max(0.0, line - of_rows), of_rows, max(0.0, square - of_row_squares), of_row_squares]
