"""quantization: it reaches only some matrices, or none."""

from typing import Any

import torch

from tests.sabotage.saboteur import SHARES, in_layers, table, tests_of
from tests.sabotage.small_models import wide_llama

ON_A_CPU = "torchao-int8", "torchao-fp8", "quanto-int8", "quanto-int4", "bnb-int8", "bnb-nf4", "bnb-fp4"


def unpack(layer: Any) -> None:
    """Replace every packed linear layer by a dense one."""
    for parent in list(layer.modules()):
        for name, module in list(parent.named_children()):
            weight = module._parameters.get("weight")
            if weight is None or type(weight) is torch.nn.Parameter or not hasattr(module, "in_features"):
                continue
            bias = module._parameters.get("bias")
            dense = torch.nn.Linear(
                module.in_features, module.out_features, bias is not None, weight.device, torch.bfloat16
            )
            setattr(parent, name, dense)


DENSE = {f"{share} of the layers dense": in_layers(share, unpack) for share in SHARES}
SABOTEURS = table("quantization", dict.fromkeys(ON_A_CPU, DENSE), {"dtype": "bfloat16"}, wide_llama)
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
