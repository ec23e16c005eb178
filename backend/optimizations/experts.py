"""How the experts of a mixture are computed."""

import msgspec

from backend.messages import Finding
from backend.models import ModelFacts
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.optimizations.compile import compiles
from backend.optimizations.kernels import takes_hub_kernels
from backend.optimizations.mxfp4_rules import stays_packed
from backend.plan import Plan
from backend.script import Script

_MOE = "transformers 5.22: integrations/moe.py"
GROUPED = "grouped_mm_kept"
"""A second name for grouped_mm: on a GPU `generate` looks for the first, and swaps it while it decodes."""

_GROUPED = ("aten::_grouped_mm", "transformers::grouped_mm_fallback")  # two a layer: gate and up together, down


def settled(subject: Subject) -> bool:
    """Whether the model has no experts that could be computed in another way."""
    return not subject.facts.experts or stays_packed(subject) or takes_hub_kernels(subject)


def _dtype(subject: Subject) -> str:
    choice = subject.choices.get("dtype", "auto")
    return subject.facts.dtype if choice == "auto" else choice


def _settles(when: object, reason: str, source: str) -> Rule:
    return Rule("fallback", when, reason, source, becomes="auto", fix=(("experts", "auto"),))  # type: ignore[arg-type]


_ALWAYS = (
    _settles(
        lambda s: not s.facts.experts,
        "This model has no experts: there is nothing to choose.",
        "transformers 5.22: PreTrainedModel._can_set_experts_implementation",
    ),
    _settles(
        lambda s: s.facts.experts > 0 and stays_packed(s),
        "Experts packed in MXFP4 are computed by kernels of their own, whatever is chosen here.",
        "transformers 5.22: integrations/mxfp4.Mxfp4GptOssExperts",
    ),
    _settles(
        lambda s: s.facts.experts > 0 and not stays_packed(s) and takes_hub_kernels(s),
        "With kernels=hub a kernel may stand in for the whole mixture, and it computes experts in its own way.",
        "transformers 5.22: integrations/hub_kernels, MegaBlocksMoeMLP",
    ),
)


class Experts(Optimization):
    """Told apart by the operators of a few more tokens: one for all experts, one for each, or a loop over them."""

    name = "experts"
    title = "Experts (MoE)"
    summary = "How the experts of a mixture are computed: one after the other, in groups, or a copy for each token."
    default = "auto"
    order = 24
    leading = True
    choices = (
        Choice(
            "auto",
            "auto",
            "What transformers takes by itself: grouped_mm; on a GPU batched_mm while it decodes.",
        ),
        Choice(
            "eager",
            "eager",
            "A loop over the experts that are hit: two small matrix products each, and the host waits to know which.",
            (
                *_ALWAYS,
                Rule(
                    "note",
                    lambda s: not settled(s) and compiles(s),
                    "Which experts are hit only the host knows: the loop breaks the compiled graph in each layer.",
                    _MOE,
                ),
            ),
        ),
        Choice(
            "grouped_mm",
            "grouped_mm",
            "Tokens sorted by expert, one grouped matrix product for all; kept while decoding on a GPU too.",
            (
                *_ALWAYS,
                Rule(
                    "note",
                    lambda s: not settled(s) and s.machine.device == "cuda" and s.machine.capability < (8, 0),
                    "On this GPU the grouped product is a loop of plain ones: torch's own needs capability 8.0.",
                    f"{_MOE}: _can_use_grouped_mm",
                ),
                Rule(
                    "note",
                    lambda s: not settled(s) and compiles(s) and _dtype(s) != "bfloat16",
                    "Compiled, the grouped product is a loop of plain ones unless weights are bfloat16.",
                    f"{_MOE}: _can_use_grouped_mm",
                ),
            ),
        ),
        Choice(
            "batched_mm",
            "batched_mm",
            "The weights of every token's experts are copied, then one batched product: quick for one token, a prompt "
            "of many needs memory for all the copies.",
            _ALWAYS,
        ),
    )

    def matters(self, facts: ModelFacts) -> bool:
        return facts.experts > 0

    def resolve(self, name: str, subject: Subject) -> str:
        """On a CPU auto is grouped_mm throughout, and so it is with guesses: `generate` changes to batched_mm in plain
        decoding alone (generation/utils.py, `_sample`). Else it is a mixture of its own; settled, all are the same."""
        if settled(subject):
            return "auto"
        throughout = subject.machine.device == "cpu" or subject.choices.get("speculation", "off") != "off"
        return "grouped_mm" if name == "auto" and throughout else name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == self.resolve("auto", subject):
            return plan
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, experts=name))

    def write(self, script: Script, plan: Plan) -> None:
        name = plan.load.experts
        if name == "grouped_mm":
            script.imports.add("from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS")
            script.patch.append(f'ALL_EXPERTS_FUNCTIONS.register({GROUPED!r}, ALL_EXPERTS_FUNCTIONS["grouped_mm"])')
            name = GROUPED
        if name is not None:
            script.patch.append(f"model.set_experts_implementation({name!r})")

    def find(self, seen: Seen) -> Finding:
        """Looks in the trace of a few tokens for the mark of each way, in the prompt's pass and in those that decode.

        The prompt's pass is never compiled, so its operators are always to be seen.
        """
        layers = sum(hasattr(module, "_is_expert_parallel") for module in seen.model.modules())
        trace = seen.trace()
        if not layers or not trace.steps:
            return Finding(self.name, "auto", "no module holds experts" if not layers else "no trace")
        grouped = sum(trace.ops[name] for name in _GROUPED)
        replayed = sum(n for name, n in trace.kernels.items() if "GroupProblemShape" in name)
        copied, looped = trace.ops["aten::repeat_interleave"], trace.ops["aten::one_hot"]
        proof = (
            f"{trace.steps} tokens through {layers} mixtures: {grouped} grouped products, {copied} batches of copied "
            f"weights, {looped} loops over experts"
        )
        if grouped < 2 * layers:
            name = "eager" if looped >= layers else "batched_mm" if copied >= layers else "auto"
            return Finding(self.name, name, proof)
        if max(grouped, replayed) > 2 * layers or (trace.steps == 1 and seen.plan.load.experts is not None):
            return Finding(self.name, "grouped_mm", proof)
        here = "batched ones" if copied else "none to be seen in compiled code"
        return Finding(self.name, "auto", f"{proof}: grouped products for the prompt, {here} while decoding")


AXIS = Experts()
