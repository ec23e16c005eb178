"""What a rank on another machine makes of the commands that it is passed."""

import msgspec

from tokendyno.backend.messages import Cancel, Load
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.ranks.member import on_this_machine
from tokendyno.backend.worker.ranks.share import Share

HERE = LoadPlan(ModelSource("embedded", "/opt/a/pocket"), kernels="local", kernels_path="/opt/a/kernels")


def test_a_rank_elsewhere_reads_model_and_kernels_where_its_machine_has_them() -> None:
    load = Load(Plan(load=HERE))
    share = Share(1, hosts=2, host=1, model_path="/srv/pocket", kernels_path="/srv/kernels")
    found = on_this_machine(load, share)
    assert isinstance(found, Load)
    assert found.plan.load.source.path == "/srv/pocket" and found.plan.load.kernels_path == "/srv/kernels"
    assert on_this_machine(load, msgspec.structs.replace(share, host=0)) == load
    assert on_this_machine(Cancel(), share) == Cancel()


def test_a_model_of_the_hub_and_random_weights_stay_as_they_are() -> None:
    load = Load(Plan(load=LoadPlan(ModelSource("hub", repo="org/name"))))
    assert on_this_machine(load, Share(1, hosts=2, host=1)) == load
