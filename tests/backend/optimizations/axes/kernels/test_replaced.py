"""Which layers can be replaced, and by what names their kernels are known in a trace."""

from typing import Any

import torch

from tokendyno.backend.worker.witness.kernels import Layer, layers


def kind(of: str, **fields: Any) -> Any:
    """An object of a class of that name, as Triton and torch make them."""
    return type(of, (), {key: staticmethod(one) if callable(one) else one for key, one in fields.items()})()


class Marked(torch.nn.Module):  # type: ignore[misc]
    kernel_layer_name = "Linear"

    def __init__(self, wide: bool = True) -> None:
        super().__init__()
        self.wide = wide


class Conditional(Marked):
    kernel_condition = staticmethod(lambda module: module.wide)


class Function:
    kernel_layer_name = "Rotary"


def test_functions_that_act_as_layers_count_and_layers_that_a_mapping_cannot_replace_do_not() -> None:
    host = torch.nn.Module()
    host._kernel_funcs = {"rotary": Function(), "plain": object()}
    model = torch.nn.ModuleList([Marked(), Conditional(True), Conditional(False), torch.nn.Linear(2, 2), host])
    assert list(layers(model)) == [Layer("Linear"), Layer("Linear"), Layer("Rotary")]
