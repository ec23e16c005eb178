"""RMSNorm as one torch operator, computed in float32."""

import torch
from torch import nn


class RMSNorm(nn.Module):
    """Replaces the RMSNorm of Llama, Mistral, Qwen 3, OLMo, gpt-oss and others with the same two attributes."""

    can_torch_compile = True
    has_backward = False

    weight: torch.Tensor
    variance_epsilon: float

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        wide = torch.nn.functional.rms_norm(
            hidden_states.float(), self.weight.shape, self.weight.float(), self.variance_epsilon
        )
        return wide.to(hidden_states.dtype)
