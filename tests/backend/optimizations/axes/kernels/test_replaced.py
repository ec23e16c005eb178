"""Which layers can be replaced, and by what names their kernels are known in a trace."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tokendyno.backend.optimizations.axes.kernels.replaced import Layer, layers, own_names


def kind(of: str, **fields: Any) -> Any:
    """An object of a class of that name, as Triton and torch make them."""
    return type(of, (), {key: staticmethod(one) if callable(one) else one for key, one in fields.items()})()


def test_names_are_of_the_operators_and_kernels_that_these_packages_define(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace(
        plain=kind("JITFunction", fn=SimpleNamespace(__name__="norm_kernel")),
        gluon=kind("GluonJITFunction", fn=SimpleNamespace(__name__="tiles_kernel")),
        custom=kind("CustomOpDef", _qualname="ours::norm"),
        overload=kind("OpOverload", name=lambda: "ours::linear.out"),
        packet=kind("OpOverloadPacket", _qualified_op_name="ours::gate"),
        namespace=kind("_OpNamespace", name="theirs"),
        borrowed=kind("OpOverload", name=lambda: "aten::mm"),
        number=3,
    )
    monkeypatch.setitem(sys.modules, "norms_1.ops", made)
    monkeypatch.setitem(sys.modules, "another.ops", SimpleNamespace(one=kind("CustomOpDef", _qualname="another::one")))
    expected = {"norm_kernel", "tiles_kernel", "ours::norm", "ours::linear.out", "ours::gate", "theirs::"}
    assert own_names({"norms_1"}) == expected
    assert own_names({"norms_1", "another"}) == expected | {"another::one"}
    assert own_names({"norms"}) == set() == own_names(set())


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
