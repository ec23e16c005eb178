"""One combination of choices with the work it is given: what the rules say of it, and the memory it needs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.fit.device import roomy
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.predict.memory import MemoryEstimate, peak_bytes
from tokendyno.backend.predict.setup import Setup, setup_of
from tokendyno.backend.predict.shape import Shape


@dataclass(frozen=True, slots=True)
class FitArm:
    """A combination of choices, given one prompt that fills all of the context but one token.

    shared  (tensor_parallel, expert_parallel): GPUs that share the model; (1, 1): as the choices say
    """

    facts: ModelFacts
    choices: Mapping[str, str]
    context: int
    batch: int
    shared: tuple[int, int] = (1, 1)

    def on(self, machine: Machine) -> Checked:
        """What the rules say on a machine with unlimited memory: whether it fits is worked out here, not by them."""
        work = Workload(prompt_tokens=max(1, self.context - 1), max_new_tokens=1, batch_size=self.batch)
        return check(make_config(self.facts.model, self.choices), self.facts, roomy(machine), work)

    def setup(self, checked: Checked, machine: Machine) -> Setup:
        """The setup that memory and the roofline bound depend on."""
        setup = setup_of(checked.plan, machine)
        tensor, expert = self.shared
        return setup if tensor == 1 else replace(setup, tensor_parallel=tensor, expert_parallel=expert)

    def memory(self, setup: Setup) -> MemoryEstimate:
        """The peak at this context."""
        return self.at(setup, self.context)

    def at(self, setup: Setup, context: int) -> MemoryEstimate:
        """The peak of a prompt that fills the context but for one token: the worst case for that context."""
        return peak_bytes(Shape(self.facts, setup, max(1, context - 1), 1, self.batch))

    def longest(self, setup: Setup, room_bytes: int) -> int:
        """The longest context that fits, by bisection: memory never falls as the context grows."""
        low, high = 0, self.facts.max_positions
        while low < high:
            middle = (low + high + 1) // 2
            memory = self.at(setup, middle)
            if max(memory.total, memory.fullest) <= room_bytes:
                low = middle
            else:
                high = middle - 1
        return low


def refused(checked: Checked) -> bool:
    """Whether a choice of the arm cannot run there, or would become another one."""
    return any(v.level in ("blocked", "fallback") and v.axis != "model" for v in checked.verdicts)
