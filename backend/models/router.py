"""How a mixture's router chooses, as far as a config says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Router:
    """What a layer with experts may have beside the usual.

    method    by which groups are chosen from a softmax; "": from all experts
    groups    of the experts, in which sigmoids are chosen
    narrowed  whether experts get a projection of what their layer has
    clipped   whether its queries, keys and values are clipped
    bare      sigmoids to which nothing is added for the choice
    """

    method: str = ""
    groups: int = 1
    experts: int = 0
    narrowed: bool = False
    clipped: bool = False
    bare: bool = False


_UNLESS_STATED = {"deepseek_v3": {"n_group": 8, "n_routed_experts": 256}}


def read_router(architecture: str, stated: Callable[[str], Any]) -> Router:
    """`stated`: a field of the config, None where it has none. What is no number counts as not stated."""

    def number(name: str, default: int) -> int:
        value = stated(name)
        usual = _UNLESS_STATED.get(architecture, {}).get(name, default)
        return value if isinstance(value, int) and value > 0 else usual

    method = stated("topk_method") if architecture == "deepseek_v2" else ""
    return Router(
        "" if method in (None, "greedy") else str(method)[:40],
        number("n_group", 1) if architecture != "deepseek_v2" else 1,
        number("n_routed_experts", 0),
        bool(stated("moe_latent_size")),
        bool(stated("clip_qkv")),
        architecture == "lfm2_moe" and stated("use_expert_bias") is False,
    )
