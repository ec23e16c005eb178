"""How weights get from files to the device."""

from tokendyno.backend.optimizations.base import Choice, Optimization, blocked, note
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

_CODE = "transformers 5.22: modeling_utils.py"

_NOTHING_TO_MOVE = note(
    lambda s: s.facts.random or not s.cuda,
    "Without files to read (random weights are created on the device), or a GPU to move weights to, this changes "
    "nothing.",
    f"{_CODE}: caching_allocator_warmup",
)
_PLACED_ANYWAY = blocked(
    lambda s: s.cuda and s.quantization_library == "bitsandbytes",
    "bitsandbytes always puts weights on the GPU while they are read.",
    "transformers 5.22: quantizers/quantizer_bnb_4bit.py, quantizer_bnb_8bit.py, update_device_map",
)
_PIECEMEAL = note(
    lambda s: s.cuda and s.choices["projections"] == "fused" and not s.facts.random,
    "Memory is reserved piecemeal: of one block, what separate matrices leave when they are fused could not be given "
    "back.",
    "backend/worker/patch/projections.py; lab/measurements.md",
)


class Loading(Optimization):
    name = "loading"
    title = "Loading"
    summary = "How weights get from files to the device: it changes load time and peak host memory."
    default = "device_map"
    sets = "load.loading"
    order = 5
    aliases = {"": ("low_cpu_mem_usage",)}
    renamed = {"low_cpu_mem_usage": "ignored, since it always loads so"}
    wish = "start"
    wishes = {"no-warmup": "reference", "plain": "reference"}
    costs = {"no-warmup": "a slower load", "plain": "host memory for the whole model"}
    choices = (
        Choice(
            "device_map",
            "Each tensor goes to the device as it is read, into memory reserved beforehand in one block.",
            (_PIECEMEAL,),
        ),
        Choice(
            "no-warmup",
            "The same, but memory is reserved piecemeal as tensors arrive.",
            (_NOTHING_TO_MOVE,),
            title="device_map, no warm-up",
        ),
        Choice(
            "plain",
            "The whole model is loaded into host memory, then moved: what a script without device_map does.",
            (_NOTHING_TO_MOVE, _PLACED_ANYWAY),
        ),
    )

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.device == "cpu" or plan.load.source.kind == "random":
            return
        if plan.load.loading == "plain":
            script.load.pop("device_map", None)
            script.patch.insert(0, "model.to(DEVICE)")
        elif not plan.load.reserves:
            script.imports.add("from transformers import modeling_utils")
            script.prepare.append("modeling_utils.caching_allocator_warmup = lambda *args: None")
