"""Which experts the steps of a text sent each token to, so that a pass over the whole text can take the same.

Steps and a pass are rounded differently. For most layers that is a small difference; for a router it can be another
expert, and all that follows is different. So a pass takes the experts of the steps, provided that its own routers
found them about as good.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

MOST_EXPERTS = 1_024
"""Of a mixture: what is chosen from more than that is a word of the vocabulary."""
SLACK = 0.5
"""How far a router's score of an expert of the steps may lie below the worst that it would have chosen itself, in
standard deviations of its scores. A random expert of 32 lies more than one below the fourth best."""
DIFFERENT = "its routers choose differently in a pass over the whole text"


class UnknownRoutes(Exception):
    """The routers of this model choose in a way that cannot be followed; the text says which, as the end of a
    sentence."""


class _Routers(TorchFunctionMode):  # type: ignore[misc]
    """Sees every choice of `top` experts: (T, E) scores to (T, top). transformers' routers all call torch.topk."""

    def __init__(self, top: int) -> None:
        super().__init__()
        self.top = top

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if func in (torch.topk, torch.Tensor.topk):
            scores = args[0]
            if scores.ndim == 2 and found.indices.shape[-1] == self.top and scores.shape[-1] <= MOST_EXPERTS:
                return self.chosen(scores, found)
        return found

    def chosen(self, scores: torch.Tensor, found: Any) -> Any:
        """What takes the place of values and indices `found` by `topk`."""
        raise NotImplementedError


class Recorded(_Routers):
    """Around the generation of a text by a model's plain steps: records its routers' choices.

    Kernels that compute a whole layer tell the scores of a router that has an attribute `told`.
    """

    def __init__(self, model: Any, top: int) -> None:
        super().__init__(top)
        self._routers = [module for name, module in model.named_modules() if name.endswith(".router")]
        self._taken: list[torch.Tensor] = []

    def __enter__(self) -> "Recorded":
        for router in self._routers:
            router.told = self._tell
        super().__enter__()
        return self

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        for router in self._routers:
            del router.told

    def chosen(self, scores: torch.Tensor, found: Any) -> Any:
        self._taken.append(found.indices)
        return found

    def _tell(self, scores: torch.Tensor) -> None:
        """Scores (E,) of one token, from which the largest were taken, of equal ones the first."""
        self._taken.append(scores.sort(descending=True, stable=True).indices[None, : self.top])

    def routes(self, real: torch.Tensor, steps: int, chunk: int = 0) -> list[torch.Tensor]:
        """Of each mixture, the experts (tokens, top) of all tokens of a text that took so many steps: a prompt, in
        passes of `chunk` tokens if that is given, then one new token each. real (P,) bool: the prompt without its
        padding. UnknownRoutes if a pass is missing."""
        read = [len(part) for part in real.split(chunk or len(real))]
        layers = len(self._taken) // (len(read) + steps - 1)
        due = [tokens for tokens in read for _ in range(layers)] + [1] * layers * (steps - 1)
        if not layers or [len(one) for one in self._taken] != due:
            raise UnknownRoutes("the kernels of its experts do not tell which of them were chosen")
        of_layers = [self._taken[layer::layers] for layer in range(layers)]
        return [torch.cat([torch.cat(of[: len(read)])[real], *of[len(read) :]]) for of in of_layers]


class Followed(_Routers):
    """Around one pass over that text: its routers take the experts of the steps."""

    def __init__(self, routes: Sequence[torch.Tensor]) -> None:
        super().__init__(routes[0].shape[-1])
        self._left = list(routes)
        self._far = torch.zeros(len(routes[0]), dtype=torch.bool, device=routes[0].device)

    def chosen(self, scores: torch.Tensor, found: Any) -> Any:
        if not self._left or self._left[0].shape != found.indices.shape:
            raise UnknownRoutes(DIFFERENT)
        taken = self._left.pop(0)
        values = scores.gather(-1, taken)
        behind = found.values.min(-1).values - values.min(-1).values
        self._far |= behind.float() > SLACK * scores.float().std(-1)
        return torch.return_types.topk((values, taken))

    def strayed(self) -> torch.Tensor:
        """(tokens,) bool: those that some router would not have sent to these experts. UnknownRoutes where routers of
        the steps were not asked again."""
        if self._left:
            raise UnknownRoutes(DIFFERENT)
        return self._far


Routing = Callable[[list[int]], Sequence[torch.Tensor]]
"""Given new tokens, the experts of each mixture for prompt and new tokens but the last. May raise UnknownRoutes."""
