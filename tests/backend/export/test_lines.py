"""No line of an exported script is without effect: each one that an arm adds, taken away or put back to what the plain
script has, breaks the script or changes what it ran with.

The text of two scripts may differ by a line that does nothing; what the script ran with may not.
"""

import ast
from typing import Any

import pytest

from tests.support.machines import settled
from tests.support.scripts import Scripts
from tokendyno.backend import hardware
from tokendyno.backend.config import Workload
from tokendyno.backend.export import script as export
from tokendyno.backend.models import ModelFacts

WORK = Workload("one two three one two three one two", max_new_tokens=10, ignore_eos=True)
ARMS = [
    {"dtype": "float32"}, {"quantization": "bnb-int8"}, {"quantization": "torchao-int8"}, {"attention": "eager"},
    {"attention": "sdpa-gqa", "cache": "static"}, {"kernels": "local"}, {"experts": "eager"}, {"projections": "fused"},
    {"cache": "static"}, {"cache": "quantized-hqq4"}, {"cache": "static", "loop": "own"}, {"shapes": "padded"},
]  # fmt: skip
"""Arms of which the effect is left in the script's variables; the lookups of speculation are not."""
PASSED = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)
MADE = """
seen = {}
for module in model.modules():
    weight = getattr(module, "weight", None)
    key = f"{type(module).__name__} {type(weight).__name__} {getattr(weight, 'dtype', '')} {'forward' in vars(module)}"
    seen[key] = seen.get(key, 0) + 1
held = globals().get("cache")
layers = [type(layer).__name__ for layer in getattr(held, "layers", [])]
experts = str(getattr(model.config, "_experts_implementation", ""))
new_ids = [sorted(seen.items()), model.config._attn_implementation, experts, type(held).__name__, layers,
           list(inputs["input_ids"].shape), clock.counts, new_ids]
"""
"""At the end of a script: what it ran with, in place of the ids that the caller reads."""


IN_CI = ("quantization=torchao-int8", "attention=sdpa-gqa,cache=static", "kernels=local", "cache=static,loop=own")


def tiered(arm: dict[str, str]) -> Any:
    """All but `IN_CI` are for the full tier."""
    name = ",".join(f"{axis}={choice}" for axis, choice in arm.items())
    return pytest.param(arm, id=name, marks=[] if name in IN_CI else [pytest.mark.full])


def statements(text: str) -> list[ast.stmt]:
    """What a script does, without imports and definitions."""
    return [statement for statement in ast.parse(text).body if not isinstance(statement, PASSED)]


def _of_definitions(statement: ast.stmt) -> bool:
    """Whether it is a constant that definitions bring along, for all that they can do, or the text beneath one."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return target(statement).strip("()").split(",")[0].isupper()


def target(statement: ast.stmt) -> str:
    """The name that a statement assigns, "" if none."""
    return ast.unparse(statement.targets[0]) if isinstance(statement, ast.Assign) else ""


def variants(text: str, plain: str) -> list[tuple[str, str]]:
    """Each added line, and the script without it; of a line that the plain script has otherwise, with that one."""
    usual = statements(plain)
    known, by_target = {ast.unparse(one) for one in usual}, {target(one): one for one in usual if target(one)}
    found = []
    for number, statement in enumerate(ast.parse(text).body):
        if isinstance(statement, PASSED) or ast.unparse(statement) in known or _of_definitions(statement):
            continue
        tree = ast.parse(text)
        put_back = by_target.get(target(statement))
        tree.body[number : number + 1] = [put_back] if put_back is not None else []
        found.append((ast.unparse(statement), ast.unparse(tree)))
    return found


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("arm", [tiered(arm) for arm in ARMS])
def test_every_line_that_an_arm_adds_has_an_effect(
    arm: dict[str, str], models: list[ModelFacts], scripts: Scripts
) -> None:
    model = models[0] if "experts" in arm else models[-1]
    text, plain = (export.script(settled(model, a, hardware.detect(), WORK), model, WORK) for a in (arm, {}))
    whole = scripts.run("whole", text + MADE)
    assert whole != scripts.run("plain", plain + MADE)
    changed = variants(text, plain)
    assert changed
    for number, (line, without) in enumerate(changed):
        try:
            found = scripts.run(f"without-{number}", without + MADE)
        except AssertionError:
            continue  # it does not even run
        assert found != whole, f"this line does nothing: {line}"


def test_a_line_that_does_nothing_is_one_of_the_variants() -> None:
    plain = "a = 1\nprint(a)\n"
    assert variants(plain, plain) == []
    found = variants("a = 2\nb = 5\nprint(a)\n", plain)
    assert found == [("a = 2", "a = 1\nb = 5\nprint(a)"), ("b = 5", "a = 2\nprint(a)")]
    assert variants("import os\ndef f():\n    pass\n" + plain, plain) == []
