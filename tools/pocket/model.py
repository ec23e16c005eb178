# mypy: disable-error-code="misc, untyped-decorator"
"""The gpt-oss architecture written for training speed; its weights carry the names that transformers uses.

transformers runs experts one by one and attention with full score matrices. Here all eight experts are two plain
matrix products (the routing weights of the six idle ones are zero), and attention is `flex_attention`, whose
log-sum-exp gives the effect of the sinks exactly: a sink takes the share `sigmoid(sink - lse)` of every row.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LIMIT, ALPHA = 7.0, 1.702  # the clamp and the sigmoid gain of gpt-oss's SwiGLU


@dataclass(frozen=True)
class Shape:
    """Sizes of the model: multiples of 64 for bitsandbytes, of 32 for MXFP4, and even for two-way parallelism."""

    vocab_size: int = 3072
    hidden_size: int = 192
    intermediate_size: int = 96
    num_hidden_layers: int = 8
    num_attention_heads: int = 6
    num_key_value_heads: int = 2
    head_dim: int = 32
    num_local_experts: int = 8
    num_experts_per_tok: int = 2
    sliding_window: int = 128
    max_position_embeddings: int = 4096
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-5

    def window(self, layer: int) -> int | None:
        """Give the sliding window of a layer; every second layer sees everything."""
        return self.sliding_window if layer % 2 == 0 else None

    def config(self) -> dict[str, Any]:
        """Give the keyword arguments of transformers' GptOssConfig."""
        values = asdict(self)
        theta = values.pop("rope_theta")
        return values | {
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": theta},
            "router_aux_loss_coef": 0.01,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "pad_token_id": 1,
        }


Attend = Callable[[Tensor, Tensor, Tensor, Tensor, int | None], Tensor]


def attend_plainly(query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, window: int | None) -> Tensor:
    """Attention by the book, (B, H, S, D); for a CPU and for checking the fast one."""
    length, groups = query.shape[2], query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    places = torch.arange(length, device=query.device)
    back = places[:, None] - places
    seen = (back >= 0) if window is None else (back >= 0) & (back < window)
    scores = (query @ key.transpose(2, 3)).float() / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~seen, -torch.inf)
    sink = sinks.float().view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return torch.cat((scores, sink), -1).softmax(-1)[..., :-1].to(value.dtype) @ value


class FlexAttend:
    """Block-sparse attention on a GPU; keeps one block mask per length and window."""

    def __init__(self) -> None:
        from torch.nn.attention.flex_attention import flex_attention

        self._flex: Any = flex_attention
        self._masks: dict[tuple[int, int | None], Any] = {}

    def mask(self, length: int, window: int | None) -> Any:
        """Make, or find again, the block mask of a layer."""
        from torch.nn.attention.flex_attention import create_block_mask

        if (length, window) not in self._masks:

            def seen(batch: Tensor, head: Tensor, at: Tensor, other: Tensor) -> Tensor:
                near = at >= other
                return near if window is None else near & (at - other < window)

            self._masks[length, window] = create_block_mask(seen, None, None, length, length, device="cuda")
        return self._masks[length, window]

    def __call__(self, query: Tensor, key: Tensor, value: Tensor, sinks: Tensor, window: int | None) -> Tensor:
        """Attend, then let the sinks take their share."""
        mask = self.mask(query.shape[2], window)
        mixed, lse = self._flex(query, key, value, block_mask=mask, enable_gqa=True, return_lse=True)
        share: Tensor = torch.sigmoid(lse.float() - sinks.float().view(1, -1, 1))
        return mixed * share[..., None].to(mixed.dtype)


class RMSNorm(nn.Module):
    """Root-mean-square norm with its arithmetic in float32."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last dimension."""
        wide = x.float()
        return (self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps))).to(x.dtype)


class Attention(nn.Module):
    """Grouped-query attention with learned sinks."""

    def __init__(self, shape: Shape, layer: int, attend: Attend) -> None:
        super().__init__()
        self.shape, self.window, self.attend = shape, shape.window(layer), attend
        size, head = shape.hidden_size, shape.head_dim
        self.q_proj = nn.Linear(size, shape.num_attention_heads * head)
        self.k_proj = nn.Linear(size, shape.num_key_value_heads * head)
        self.v_proj = nn.Linear(size, shape.num_key_value_heads * head)
        self.o_proj = nn.Linear(shape.num_attention_heads * head, size)
        self.sinks = nn.Parameter(torch.zeros(shape.num_attention_heads))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Mix the positions of (B, S, hidden)."""
        batch, length, _ = x.shape
        query, key, value = (
            part(x).view(batch, length, -1, self.shape.head_dim).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        mixed = self.attend(query, key, value, self.sinks, self.window)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply rotary positions."""
    first, second = x.chunk(2, dim=-1)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class Router(nn.Module):
    """Chooses the experts of a token."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape.num_local_experts, shape.hidden_size))
        self.bias = nn.Parameter(torch.zeros(shape.num_local_experts))
        self.active = shape.num_experts_per_tok

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Give dense routing weights (T, E), zero for idle experts, and the balance loss."""
        with torch.autocast(x.device.type, enabled=False):  # near ties must not be settled by rounding
            logits = F.linear(x.float(), self.weight, self.bias)
        top, index = logits.topk(self.active, dim=-1)
        dense = torch.zeros_like(logits).scatter(-1, index, top.softmax(-1))
        load = (dense > 0).float().mean(0)
        balance = logits.shape[-1] * (load * logits.softmax(-1).mean(0)).sum()
        return dense, balance


class Experts(nn.Module):
    """All experts at once; gate and up columns alternate as in gpt-oss."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        count, size, inner = shape.num_local_experts, shape.hidden_size, shape.intermediate_size
        self.gate_up_proj = nn.Parameter(torch.empty(count, size, 2 * inner))
        self.gate_up_proj_bias = nn.Parameter(torch.zeros(count, 2 * inner))
        self.down_proj = nn.Parameter(torch.empty(count, inner, size))
        self.down_proj_bias = nn.Parameter(torch.zeros(count, size))

    def forward(self, x: Tensor, weights: Tensor) -> Tensor:
        """Run (T, hidden) through every expert and add up by weight (T, E)."""
        count, size, double = self.gate_up_proj.shape
        wide = self.gate_up_proj.permute(1, 0, 2).reshape(size, count * double)
        mixed = (x @ wide.to(x.dtype)).view(-1, count, double // 2, 2) + self.gate_up_proj_bias.to(x.dtype).view(
            count, double // 2, 2
        )
        gate, up = mixed.unbind(-1)
        gate, up = gate.clamp(max=LIMIT), up.clamp(-LIMIT, LIMIT)
        inner = (up + 1) * gate * torch.sigmoid(ALPHA * gate) * weights[..., None].to(x.dtype)
        down = self.down_proj.reshape(count * double // 2, size).to(x.dtype)
        return inner.reshape(-1, count * double // 2) @ down + (weights @ self.down_proj_bias).to(x.dtype)


class MLP(nn.Module):
    """Router and experts."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.router, self.experts = Router(shape), Experts(shape)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Give the mixed output (B, S, hidden) and the balance loss."""
        flat = x.reshape(-1, x.shape[-1])
        weights, balance = self.router(flat)
        return self.experts(flat, weights).view(x.shape), balance


class Block(nn.Module):
    """One decoder layer."""

    def __init__(self, shape: Shape, layer: int, attend: Attend) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(shape, layer, attend), MLP(shape)
        self.input_layernorm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        """Give the new residual stream and the balance loss."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        out, balance = self.mlp(self.post_attention_layernorm(x))
        return x + out, balance


class Body(nn.Module):
    """Embedding, layers and the last norm."""

    def __init__(self, shape: Shape, attend: Attend) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Block(shape, layer, attend) for layer in range(shape.num_hidden_layers))
        self.norm = RMSNorm(shape.hidden_size, shape.rms_norm_eps)


class Pocket(nn.Module):
    """The whole model; the output layer is the embedding."""

    def __init__(self, shape: Shape, attend: Attend = attend_plainly) -> None:
        super().__init__()
        self.shape, self.model = shape, Body(shape, attend)
        half = shape.head_dim // 2
        turns = shape.rope_theta ** (-torch.arange(half).float() / half)
        angle = torch.arange(shape.max_position_embeddings).float()[:, None] * turns
        self.register_buffer("cos", angle.cos(), persistent=False)
        self.register_buffer("sin", angle.sin(), persistent=False)
        self._initialize()

    def _initialize(self) -> None:
        """Draw small weights, smaller still where a layer writes into the residual stream."""
        small = 0.02 / math.sqrt(2 * self.shape.num_hidden_layers)
        for name, weight in self.named_parameters():
            if weight.ndim > 1:
                nn.init.normal_(weight, std=small if "o_proj" in name or "down_proj" in name else 0.02)
            if name.endswith("bias"):
                nn.init.zeros_(weight)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Give logits (B, S, vocabulary) and the mean balance loss of the layers."""
        length = ids.shape[1]
        cos, sin = self.cos[:length], self.sin[:length]
        x: Tensor = self.model.embed_tokens(ids)
        if torch.is_autocast_enabled(x.device.type):
            x = x.to(torch.bfloat16)
        balances = []
        for block in self.model.layers:
            x, balance = block(x, cos, sin)
            balances.append(balance)
        return F.linear(self.model.norm(x), self.model.embed_tokens.weight), torch.stack(balances).mean()

    def loss(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Give next-token loss in nats and the balance loss of (B, S + 1) ids."""
        logits, balance = self(ids[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].reshape(-1)), balance
