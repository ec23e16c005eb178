"""The plan is a value; its load key moves only with what is loaded."""

import msgspec
import pytest

from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import STATIC, UNWINDOWED, GeneratePlan, LoadPlan, Plan

POCKET = Plan(LoadPlan(ModelSource("embedded", path="/presets/models/pocket")))


@pytest.mark.parametrize(
    "generate", [GeneratePlan(cache=STATIC), GeneratePlan(cache=UNWINDOWED), GeneratePlan(compile_mode="default")]
)
def test_another_way_to_generate_needs_no_reload(generate: GeneratePlan) -> None:
    assert msgspec.structs.replace(POCKET, generate=generate).load_key == POCKET.load_key


@pytest.mark.parametrize(
    "load",
    [
        LoadPlan(POCKET.load.source, dtype="float32"),
        LoadPlan(POCKET.load.source, attention="eager"),
        LoadPlan(POCKET.load.source, device="cuda"),
        LoadPlan(ModelSource("folder", path="/presets/models/pocket")),
        LoadPlan(ModelSource("hub", repo="org/name")),
        LoadPlan(ModelSource("hub", repo="org/name", revision="main")),
    ],
)
def test_another_way_to_load_needs_one(load: LoadPlan) -> None:
    assert Plan(load).load_key != POCKET.load_key


def test_a_plan_survives_the_wire() -> None:
    assert msgspec.json.decode(msgspec.json.encode(POCKET), type=Plan) == POCKET
    assert hash(POCKET) == hash(msgspec.json.decode(msgspec.json.encode(POCKET), type=Plan))


def test_an_unknown_cache_is_no_plan() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"cache": "hybrid"}', type=GeneratePlan)
