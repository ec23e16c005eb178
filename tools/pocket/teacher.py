# ruff: noqa: SIM905
# mypy: disable-error-code="misc, untyped-decorator"
"""Sample from the teacher at large batch: a bare Llama decode loop that is limited by memory traffic, not by Python.

`generate` of transformers spends most of a step outside the model at batch sizes in the thousands. Four choices make
this loop fast: every prompt of a batch has the same length, so attention needs no mask; the three query heads that
share a KV head are laid out as three query positions, so keys and values are read once; the output layer keeps only
the words that a children's story may use; and the sampler (penalty, min-p, Gumbel maximum) needs no sort.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

GGUF_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
RARE_FROM = 26_000  # BPE merges are ordered by frequency: later ids are rare words
ALLOWED = re.compile(r"""^(?: ?[A-Z]?[a-z]+| ?[AI]|[.,!?;]+| ?"|[.,!?]"|' ?|'(?:s|t|re|ve|m|ll|d)|-|\n\n?| )$""")
WORN = ("special adventure adventures journey community lesson valuable unique various importance challenges").split()
STOP = (
    "the a an and to of in on at for with was were is are be been it its he she they them his her him their "
    "i you we my me us our your that this there then so but as if when what who how had has have did do does "
    "not no one up out all said s t re ve m ll d from into by very could would can will"
).split()


@dataclass(frozen=True)
class Sampling:
    """How the teacher draws its words; `penalty` is subtracted per earlier use of a content word."""

    max_new_tokens: int = 144
    temperature: float = 0.75
    min_p: float = 0.1
    penalty: float = 0.3
    worn_penalty: float = 1.0


@dataclass(frozen=True)
class Layer:
    """Weights of one decoder layer, projections that share an input stacked."""

    norm1: Tensor
    qkv: Tensor
    out: Tensor
    norm2: Tensor
    gate_up: Tensor
    down: Tensor


def rms(x: Tensor, weight: Tensor, eps: float = 1e-5) -> Tensor:
    """Normalize in float32, as Llama does."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply rotary positions to the last dimension."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def before_attention(x: Tensor, norm: Tensor, qkv: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Give rotated queries (B, 3, 3, 64) and the new cache entries (2, B, 3, 64) of one position."""
    batch = x.shape[0]
    mixed = rms(x, norm) @ qkv.T
    query = rotate(mixed[:, :576].view(batch, 3, 3, 64), cos, sin)
    key = rotate(mixed[:, 576:768].view(batch, 3, 64), cos, sin)
    return query, torch.stack((key, mixed[:, 768:].view(batch, 3, 64)))


def after_attention(x: Tensor, mixed: Tensor, out: Tensor, norm: Tensor, gate_up: Tensor, down: Tensor) -> Tensor:
    """Add attention and the feed-forward block to the residual stream."""
    x = x + mixed.reshape(x.shape[0], 576) @ out.T
    gate, up = (rms(x, norm) @ gate_up.T).chunk(2, dim=-1)
    return x + (F.silu(gate) * up) @ down.T


def choose(
    x: Tensor, norm: Tensor, head: Tensor, used: Tensor, bias: Tensor, heat: float, floor: float
) -> tuple[Tensor, Tensor]:
    """Draw a word index per row and tell its log-probability at temperature 1, before any penalty."""
    logits = (rms(x, norm) @ head.T).float()
    score = (logits - used + bias) / heat
    score = torch.where(score < score.amax(-1, keepdim=True) + floor, -torch.inf, score)
    noise = -torch.log(-torch.log(torch.rand_like(score).clamp(1e-20, 1 - 1e-7)))
    word = (score + noise).argmax(-1)
    logp = logits.gather(1, word[:, None])[:, 0] - torch.logsumexp(logits, -1)
    return word, logp


class Teacher:
    """SmolLM2-135M-Instruct, unpacked from its GGUF file."""

    def __init__(self, folder: Path, device: str, sampling: Sampling) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.device, self.sampling = device, sampling
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder, gguf_file=GGUF_FILE)
        self.dtype = torch.bfloat16 if device == "cuda" else torch.float32
        model: Any = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF_FILE, dtype=self.dtype)
        weights = {name: value.to(device) for name, value in model.state_dict().items()}
        self.layers = [self._layer(weights, f"model.layers.{index}.") for index in range(30)]
        self.embed, self.norm = weights["model.embed_tokens.weight"], weights["model.norm.weight"]
        self._restrict()
        turns = 100_000.0 ** (-torch.arange(0, 64, 2, device=device).float() / 64)
        angle = torch.arange(1024, device=device).float()[:, None] * turns
        self.cos, self.sin = angle.cos().to(self.dtype), angle.sin().to(self.dtype)
        fast = device == "cuda"
        self._before = torch.compile(before_attention, dynamic=False) if fast else before_attention
        self._after = torch.compile(after_attention, dynamic=False) if fast else after_attention
        self._choose = torch.compile(choose, dynamic=False) if fast else choose

    @staticmethod
    def _layer(weights: dict[str, Tensor], at: str) -> Layer:
        """Collect one layer's weights."""
        attention, mlp = at + "self_attn.", at + "mlp."
        return Layer(
            norm1=weights[at + "input_layernorm.weight"],
            qkv=torch.cat([weights[f"{attention}{name}_proj.weight"] for name in "qkv"]),
            out=weights[attention + "o_proj.weight"],
            norm2=weights[at + "post_attention_layernorm.weight"],
            gate_up=torch.cat([weights[f"{mlp}{name}_proj.weight"] for name in ("gate", "up")]),
            down=weights[mlp + "down_proj.weight"],
        )

    def _restrict(self) -> None:
        """Keep the rows of the output layer that a plain English story needs, the end token first."""
        end: int = self.tokenizer.convert_tokens_to_ids("<|im_end|>")
        kept, weight, bias = [end], [0.0], [0.0]
        for token in range(RARE_FROM):
            text: str = self.tokenizer.decode([token])
            if token == end or not ALLOWED.match(text):
                continue
            word = text.strip().lower()
            plain = word in STOP or not word.isalpha() or text.strip()[0].isupper() or not text.startswith(" ")
            kept.append(token)
            weight.append(0.0 if plain else self.sampling.penalty)
            bias.append(-self.sampling.worn_penalty if word in WORN else 0.0)
        self.kept = torch.tensor(kept, device=self.device)
        self.head = self.embed[self.kept].contiguous()
        self.weight = torch.tensor(weight, device=self.device, dtype=self.dtype)
        self.bias = torch.tensor(bias, device=self.device)

    def _prefill(self, ids: Tensor, cache: Tensor) -> Tensor:
        """Fill cache (layers, 2, B, 3, L, 64) with the prompts (B, P), and give the last hidden state (B, 576)."""
        batch, length = ids.shape
        x = self.embed[ids]
        cos, sin = self.cos[:length], self.sin[:length]
        for index, layer in enumerate(self.layers):
            mixed = rms(x, layer.norm1) @ layer.qkv.T
            query, key, value = (
                part.view(batch, length, -1, 64).transpose(1, 2) for part in mixed.split((576, 192, 192), dim=-1)
            )
            key = rotate(key, cos, sin)
            cache[index, 0, :, :, :length], cache[index, 1, :, :, :length] = key, value
            wide_key, wide_value = (part.repeat_interleave(3, dim=1) for part in (key, value))
            mixed = F.scaled_dot_product_attention(rotate(query, cos, sin), wide_key, wide_value, is_causal=True)
            flat = mixed.transpose(1, 2).reshape(batch * length, 576)
            x = after_attention(x.reshape(-1, 576), flat, layer.out, layer.norm2, layer.gate_up, layer.down).view(
                batch, length, 576
            )
        return x[:, -1]

    @torch.inference_mode()
    def sample(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Continue prompts of one length (B, P): teacher ids (B, N), the end token filling up, and their log-probs."""
        how, (batch, length) = self.sampling, ids.shape
        total = length + how.max_new_tokens
        cache = torch.empty(30, 2, batch, 3, total, 64, device=self.device, dtype=self.dtype)
        x = torch.cat([self._prefill(ids[i : i + 512], cache[:, :, i : i + 512]) for i in range(0, batch, 512)])
        used = torch.zeros(batch, len(self.kept), device=self.device, dtype=self.dtype)
        done = torch.zeros(batch, device=self.device, dtype=torch.bool)
        words = torch.zeros(how.max_new_tokens, batch, device=self.device, dtype=torch.long)
        logps = torch.zeros(how.max_new_tokens, batch, device=self.device)
        floor = float(torch.tensor(how.min_p).log())
        for step in range(how.max_new_tokens):
            word, logp = self._choose(x, self.norm, self.head, used, self.bias, how.temperature, floor)
            word = word.masked_fill(done, 0)
            words[step], logps[step] = word, logp.masked_fill(done, 0.0)
            done |= word == 0
            if step % 32 == 31 and bool(done.float().mean() > 0.97):
                break
            used.scatter_add_(1, word[:, None], self.weight[word][:, None])
            x = self._step(self.embed[self.kept[word]], cache, length + step)
        return self.kept[words.T], logps.T

    def _step(self, x: Tensor, cache: Tensor, at: int) -> Tensor:
        """Run the layers for one new position."""
        cos, sin = self.cos[at], self.sin[at]
        for index, layer in enumerate(self.layers):
            query, fresh = self._before(x, layer.norm1, layer.qkv, cos, sin)
            store = cache[index]
            store[:, :, :, at] = fresh
            mixed = F.scaled_dot_product_attention(query, store[0, :, :, : at + 1], store[1, :, :, : at + 1])
            x = self._after(x, mixed, layer.out, layer.norm2, layer.gate_up, layer.down)
        return x
