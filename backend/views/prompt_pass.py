"""What a decoder's forward pass over its prompt took, as an encoder's passes are shown."""

from dataclasses import dataclass

from tokendyno.backend.runs.records import PrefillBound
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import three
from tokendyno.backend.views.tile import Tile, in_percent, in_seconds, tile


@dataclass(frozen=True, slots=True)
class PromptPass:
    """The passes up to the first token: its choice is in their time too.

    tokens        of all rows, padding included
    passes        in which they were read: more than one where the prompt comes in chunks
    seconds       of one pass, their mean where there are several
    """

    tokens: int
    passes: int
    seconds: float
    tokens_per_s: float


def prompt_pass(run: Snapshot, name: str) -> PromptPass | None:
    """Of an arm; None for an encoder, all of whose passes are timed, and as long as there is no first token."""
    arm, ttft_s = run.arms[name], run.summary(name).ttft_s
    if run.unit != "token" or arm.started is None or not ttft_s:
        return None
    tokens = arm.started.prompt_tokens * arm.started.batch_size
    passes = max(1, arm.finished.counts.prefill.prompt_passes) if arm.finished else 1
    return PromptPass(tokens, passes, ttft_s / passes, tokens / ttft_s)


def prompt_pass_rows(found: PromptPass | None, bound: PrefillBound | None) -> list[Tile]:
    """One row, with what share of the time the hardware could not do without, where that is known."""
    if found is None:
        return []
    told = [f"{found.tokens:,} tokens", f"{three(found.tokens_per_s)} tok/s"]
    if found.passes > 1:
        told.insert(0, f"mean of {found.passes} passes")
    if bound is not None:
        share = "".join(in_percent(bound.seconds / (found.seconds * found.passes)) or ())
        told.append(f"{share} of its {bound.limited_by} bound")
    return [tile("prompt_pass", "Forward pass over the prompt", in_seconds(found.seconds), ", ".join(told))]
