"""Holds what each part of a model gives against what its plain code gives for the same input.

Parts are decoder layers, what they are made of, and what is before and after them. Two passes are made with each of
the two models, of a short text and of one more token. A part of the plain model gets the input that the same part of
the other one had, so that what differs is that part, and roundings do not add up.
"""

import functools
import inspect
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from transformers.utils import ModelOutput

from backend.models.source import ModelSource
from backend.optimizations.proof import Held, PartKind
from backend.optimizations.tensor_bytes import has_packed_weights
from backend.worker.prove.file_numbers import Numbers, held_to_files
from backend.worker.prove.packed_numbers import packed_beside_files
from backend.worker.prove.parts import parts_of
from backend.worker.prove.plain_code import Unlike, as_imported, config_of, plain_copy

TOKENS = 48
"""Of the text: the plain model takes more memory and time than the other one."""
LONGEST, LONGEST_OF_ALL, MOST_PARAMETERS = 512, 1_024, 200_000_000
"""Tokens of a run's text that are compared at most, and of all texts of a batch; on a CPU of models up to that size,
with which both passes over them take seconds."""
LATER = 5
"""Tokens, by which texts of a batch are told apart."""
LONGEST_WINDOW = 512
"""A window as long as that is filled, and left behind by a few tokens."""
PAST_WINDOW = 16
_WHOLE = ""
"""The name of the model among its parts."""
OF_FORMATS = {torch.float32: 5e-4}
OF_16_BITS, OF_PACKED = 0.02, 0.05
"""The largest difference of a position's numbers, as a share of their length, that another order of summation makes:
measured were 4e-7 in float32, 0.006 in bfloat16. Half of the heads left out make 0.7, numbers of 8 bits 0.026."""
FEW = 1 / 16
"""Share of positions that may differ where routers that are rounded otherwise send a token elsewhere, beside packed
weights, and on a GPU."""


def held_to_plain_code(
    model: Any, ids: Sequence[int], source: ModelSource | None = None, folder: Path | None = None, texts: int = 1,
    length: int = 0,
) -> Held:  # fmt: skip
    """`ids`: a text, which is repeated until it is long enough; `source`: has the config; `folder`: the files that the
    model was loaded from, if there are any, to which its tensors are held; `texts`: as many of one length and different
    tokens in a batch; `length`: tokens of the run's text. What stands in the way is said in `unheld`.
    """
    try:
        with torch.inference_mode(), torch.compiler.set_stance("force_eager"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # flex_attention says that it is not compiled
            with as_imported():
                plain = plain_copy(model, source and config_of(source, folder))
            numbers = Numbers() if folder is None else held_to_files(folder, model, plain)
            packed = {} if folder is None else packed_beside_files(folder, model, plain)
            held = _held(model, plain, _texts(model, ids, texts, length))
            if turned := _turned_otherwise(model, plain):
                held = replace(held, odd={**held.odd, "attention": [*turned, *held.odd.get("attention", ())]})
            return replace(held, tensors=numbers.compared, other=numbers.other, packed=packed)
    except torch.OutOfMemoryError:
        return Held(unheld="it needs more memory than is free")
    except Unlike as unlike:
        return Held(unheld=str(unlike), broke=True)
    except Exception as error:  # of passes that no user asked for: the run that they would end is complete
        return Held(unheld=f"it failed: {type(error).__name__}: {error}"[:300], broke=True)


def _texts(model: Any, ids: Sequence[int], texts: int, length: int) -> Any:
    """(texts, tokens + 1), each of which begins a few tokens later in the text: as long as that of the run, if that
    takes no long time"""
    config = model.config.get_text_config(decoder=True)
    window = getattr(config, "sliding_window", None) or 0
    tokens = max(TOKENS, window + PAST_WINDOW if window <= LONGEST_WINDOW else 0)
    if model.device.type == "cuda" or model.num_parameters() <= MOST_PARAMETERS:
        tokens = max(tokens, min(length, LONGEST, LONGEST_OF_ALL // texts))
    tokens = min(tokens, (getattr(config, "max_position_embeddings", None) or tokens) - 1)
    rows = [[ids[(row * LATER + place) % len(ids)] for place in range(tokens + 1)] for row in range(texts)]
    return torch.tensor(rows, device=model.device)


def _turned_otherwise(model: Any, plain: Any) -> list[str]:
    """Modules of rotary positions with other frequencies than the config's, such as rounded ones, which turn long texts
    alone. Left out are those that follow the length of a text."""
    found = []
    for name, module in plain.named_modules():
        kinds = getattr(module, "rope_type", "")
        if any(kind in str(kinds) for kind in ("dynamic", "longrope")):
            continue
        for buffer in (one for one in module._non_persistent_buffers_set if "inv_freq" in one):
            own = model.get_submodule(name)._buffers.get(buffer)
            if own is None or not torch.allclose(own.float(), module._buffers[buffer].float(), rtol=1e-5, atol=0):
                found.append(f"{name} ({buffer})")
    return found


def _held(model: Any, plain: Any, text: Any) -> Held:
    kinds = parts_of(plain)
    names = [*kinds, _WHOLE]
    given: dict[tuple[str, int], tuple[Any, Any]] = {}
    with _watched(model, names, given):
        _pass(model, text)
    exact = "mixture" not in kinds.values() and model.device.type == "cpu" and not has_packed_weights(model)
    compared = _Compared(given, tolerance(model), 0 if exact else FEW)
    with compared.in_parts(plain, names), as_imported():
        _pass(plain, text)
    return _told(kinds, compared)


def tolerance(model: Any) -> float:
    """What every number may differ by. Packed weights may round what they multiply with, too."""
    if has_packed_weights(model):
        return OF_PACKED
    return OF_FORMATS.get(model.dtype, OF_16_BITS)


def _told(kinds: dict[str, PartKind], compared: "_Compared") -> Held:
    """A layer that differs because something in it does is not counted with it, and what is between parts only where
    no part differs."""
    parts: Counter[PartKind] = Counter()
    odd: dict[PartKind, list[str]] = {}
    apart = compared.gives
    for name, kind in kinds.items():
        if name in apart:
            parts[kind] += 1
            if apart[name] and not any(far for one, far in apart.items() if one.startswith(f"{name}.")):
                odd.setdefault(kind, []).append(name)
    if not odd:
        between = [f"what {name} gets" for name, far in compared.gets.items() if far and name != _WHOLE]
        between += ["what the model gives"] if apart.get(_WHOLE) else []
        odd = {"other": between[:1]} if between else {}
    return Held(parts, odd)


def _pass(model: Any, text: Any) -> None:
    """Of all tokens but the last, and of that with a growing cache; all at once in a model without a cache."""
    few = {"logits_to_keep": max(1, TOKENS // len(text))}
    if "logits_to_keep" not in inspect.signature(type(model).forward).parameters:
        few = {}
    out = model(input_ids=text[:, :-1], **few)  # as many scores of a large vocabulary take memory
    past = getattr(out, "past_key_values", None)
    if past is not None:
        model(input_ids=text[:, -1:], past_key_values=past, use_cache=True)


@contextmanager
def _watched(model: Any, names: Sequence[str], given: dict[tuple[str, int], tuple[Any, Any]]) -> Iterator[None]:
    """Notes what each of these parts gets, before any other hook of it, and gives, after all of them."""
    calls: Counter[str] = Counter()
    inputs: dict[str, Any] = {}

    def before(name: str, args: Any, kwargs: Any) -> None:
        inputs[name] = _copied(_first([*args, *kwargs.values()]))

    def after(name: str, output: Any) -> None:
        given[name, calls[name]] = inputs.pop(name), _copied(_first([output]))
        calls[name] += 1

    with ExitStack() as hooks:
        for name in names:
            part = model.get_submodule(name)
            hooks.callback(
                part.register_forward_pre_hook(
                    lambda _, args, kwargs, name=name: before(name, args, kwargs), prepend=True, with_kwargs=True
                ).remove
            )
            hooks.callback(part.register_forward_hook(lambda _, args, output, name=name: after(name, output)).remove)
        yield


class _Compared:
    """Gives the parts of the plain model what those of the other one got. Parts that this never called are nobody's:
    what it called instead shows in what its layer gives.

    gives, gets  whether a part gave something else; whether it would have got something else
    """

    def __init__(self, given: dict[tuple[str, int], tuple[Any, Any]], share: float, few: float) -> None:
        self._given, self._share, self._few = given, share, few
        self._calls: Counter[str] = Counter()
        self.gives: dict[str, bool] = {}
        self.gets: dict[str, bool] = {}

    @contextmanager
    def in_parts(self, plain: Any, names: Sequence[str]) -> Iterator[None]:
        """While the plain model is called."""
        with ExitStack() as hooks:
            for name in names:
                part = plain.get_submodule(name)
                before, after = functools.partial(self._before, name), functools.partial(self._after, name)
                hooks.callback(part.register_forward_pre_hook(before, with_kwargs=True).remove)
                hooks.callback(part.register_forward_hook(after).remove)
            yield

    def _before(self, name: str, part: Any, args: Any, kwargs: Any) -> Any:
        theirs, _ = self._given.get((name, self._calls[name]), (None, None))
        own = _first([*args, *kwargs.values()])
        if theirs is None or own is None or own.shape != theirs.shape:
            return None
        self.gets[name] = self.gets.get(name, False) or _far(theirs, own, self._share, self._few)
        return tuple(theirs if one is own else one for one in args), {
            key: theirs if one is own else one for key, one in kwargs.items()
        }

    def _after(self, name: str, part: Any, args: Any, output: Any) -> None:
        found, own = self._given.get((name, self._calls[name])), _first([output])
        self._calls[name] += 1
        if found is not None and own is not None:
            self.gives[name] = self.gives.get(name, False) or _far(found[1], own, self._share, self._few)


def _first(values: Sequence[Any]) -> Any:
    """The first tensor of numbers that are no ids or places, alone or at the beginning of a tuple."""
    for one in values:
        one = one[0] if isinstance(one, tuple | ModelOutput) and len(one) else one
        if isinstance(one, torch.Tensor) and one.is_floating_point() and one.ndim > 1:
            return one
    return None


def _copied(tensor: Any) -> Any:
    """Layers may add to a tensor in place."""
    return None if tensor is None else tensor.clone()


def _far(given: Any, plain: Any, share: float, few: float) -> bool:
    """Whether more than a few of the positions (.., numbers) differ."""
    if given is None or given.shape != plain.shape:
        return True
    difference = (given.float() - plain.float()).norm(dim=-1)
    allowed = plain.float().norm(dim=-1) * share
    far = ~(difference <= allowed)  # NaN is far
    return bool(far.sum() > far.numel() * few)
