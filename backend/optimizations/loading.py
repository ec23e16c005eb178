"""How weights come from files into memory."""

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.plan import LoadingKind, Plan
from backend.script import Script

_CODE = "transformers 5.22: modeling_utils.py"
_KINDS: dict[str, LoadingKind] = {"device_map": "device_map", "no-warmup": "no-warmup", "plain": "plain"}

_NO_FILES = Rule(
    "note",
    lambda s: s.facts.random,
    "Random weights are made where the model is: nothing is read from files, so this changes nothing.",
    "backend/worker/noise.py",
)
_NO_GPU = Rule(
    "note",
    lambda s: s.machine.device == "cpu" and not s.facts.random,
    "Without a GPU nothing is moved and no allocator is warmed up, so this changes nothing.",
    f"{_CODE}: caching_allocator_warmup",
)
_PLACED_ANYWAY = Rule(
    "blocked",
    lambda s: s.machine.device == "cuda" and s.choices.get("quantization", "none").startswith("bnb"),
    "bitsandbytes puts the weights on the GPU while they are read, asked or not.",
    "transformers 5.22: quantizers/quantizer_bnb_4bit.py, quantizer_bnb_8bit.py, update_device_map",
    fix=(("loading", "device_map"),),
)


class Loading(Optimization):
    """Told apart by bytes: what the allocator's warm-up reserved, and what was moved from host memory."""

    name = "loading"
    title = "Loading"
    summary = "The way of the weights from files to the device; it changes the seconds and the memory of a load."
    default = "device_map"
    order = 5
    choices = (
        Choice(
            "device_map",
            "device_map",
            "Each tensor goes to the device as it is read, into memory that was reserved in one piece before.",
        ),
        Choice(
            "no-warmup",
            "device_map, no warm-up",
            "The same, but memory is reserved bit by bit while tensors arrive.",
            (_NO_FILES, _NO_GPU),
        ),
        Choice(
            "plain",
            "plain",
            "The whole model into host memory first, then moved: what a script without device_map does.",
            (_NO_FILES, _NO_GPU, _PLACED_ANYWAY),
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, loading=_KINDS[name]))

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.device == "cpu" or plan.load.source.kind == "random":
            return
        match plan.load.loading:
            case "plain":
                script.load.pop("device_map", None)
                script.patch.insert(0, "model.to(DEVICE)")
            case "no-warmup":
                script.imports.add("from transformers import modeling_utils")
                script.prepare.append("modeling_utils.caching_allocator_warmup = lambda *args: None")

    def find(self, seen: Seen) -> Finding:
        """What made no difference is called as planned, and said to have made none."""
        if seen.plan.load.source.kind == "random":
            return Finding(self.name, seen.plan.load.loading, "weights were made in place: every way is the same")
        if seen.plan.load.device == "cpu":
            return Finding(self.name, seen.plan.load.loading, "nothing was moved to a device: every way is the same")
        warmed, moved = (int(seen.counts.get(name, 0)) for name in ("load_warmup_bytes", "load_moved_bytes"))
        proof = f"the allocator's warm-up reserved {warmed:,} bytes; {moved:,} bytes came by way of host memory"
        return Finding(self.name, "plain" if moved else "device_map" if warmed else "no-warmup", proof)


AXIS = Loading()
