"""Times forward passes of an encoder, or of a decoder over its prompt, in several arms, which take turns on one model.

    python -m tools.bench.gpu.passes --model random:bert-base-uncased --tokens 128 --batch 8 "" cuda_graphs=manual
    python -m tools.bench.gpu.passes --model random:Qwen3-0.6B --tokens 256 cache=static,loop=own,cuda_graphs=manual
        cache=static,loop=own,cuda_graphs=manual,prefill=captured

Arms that load the model otherwise come one after the other, and with `--one-by-one` all of them: an arm that compiles
or captures does so in each turn. Printed of each run: milliseconds of a pass (of a decoder the time to first token; of
an encoder the median); of each arm the median of its runs, the first of which comes right after the warm-up; peaks of
memory beside the predicted ones; and, unless `--no-proof`, rows of the ledger that are not sound.
"""

import argparse
import itertools
import statistics

import msgspec

from backend import hardware
from backend.arms.check import Checked, check
from backend.arms.parse import parse_arm
from backend.config import Workload
from backend.evidence import Evidence
from backend.messages import Finished, Generate
from backend.models import ModelFacts, resolve
from backend.optimizations import all_axes
from tests.support.ledger import SOUND
from tests.support.local_worker import LocalWorker
from tests.support.worker import column

MIB = 1 << 20


class Arm:
    """An arm, and what its runs gave so far."""

    def __init__(self, text: str, facts: ModelFacts, work: Workload) -> None:
        self.text, self.encoder = text or "defaults", facts.kind == "encoder"
        self.checked: Checked = check(parse_arm(facts.model, text), facts, hardware.detect(), work)
        self.job = Generate(
            self.checked.plan,
            "",
            work.prompt_tokens,
            work.max_new_tokens,
            work.batch_size,
            0.0,
            0,
            True,
            True,
            prove=False,
        )
        self.pass_ms: list[float] = []
        self.token_ms: list[float] = []
        self.finished: Finished | None = None
        self.first_use_ms: list[float] = []

    def run(self, worker: LocalWorker, prove: bool = False) -> None:
        """Once more."""
        self.finished = worker.run(msgspec.structs.replace(self.job, prove=prove))
        extra = self.finished.extra
        if extra.warmup_first_s and extra.warmup_last_s:
            self.first_use_ms.append(1e3 * (extra.warmup_first_s - extra.warmup_last_s))
        latency_s: list[float] = column(worker.events, "latency_s")
        self.pass_ms.append(1e3 * (statistics.median(latency_s) if self.encoder else self.finished.ttft_s))
        print(f"  {self.text}: {self.pass_ms[-1]:.3f} ms", flush=True)
        if not self.encoder and len(latency_s) > 1:
            self.token_ms.append(1e3 * statistics.median(latency_s[1:]))

    def tell(self) -> None:
        """What it came to."""
        assert self.finished is not None
        extra, foreseen = self.finished.extra, self.checked.memory
        every = " ".join(f"{one:.3f}" for one in self.pass_ms)
        print(f"{self.text}: {statistics.median(self.pass_ms):.3f} ms a pass ({every})", end="")
        if self.token_ms:
            print(f"; {statistics.median(self.token_ms):.3f} ms a token", end="")
        if self.first_use_ms:
            print(f"; {self.first_use_ms[0]:,.0f} ms on first use, in the warm-up", end="")
        peaks = [(extra.allocator_peak_bytes, foreseen.tensors), (extra.process_peak_bytes, foreseen.total)]
        told = [f"{(seen or 0) / MIB:,.0f} (predicted {wanted / MIB:,.0f})" for seen, wanted in peaks]
        print(f"; allocated {told[0]}, process {told[1]} MiB", flush=True)

    def tell_rows(self) -> None:
        """Rows that are not sound, and those of its own choices."""
        assert self.finished is not None
        off = {axis.name: axis.off for axis in all_axes()}
        for finding in self.finished.findings:
            planned = self.checked.planned[finding.axis]
            row = Evidence(self.checked.requested[finding.axis], planned, finding, off[finding.axis])
            if row.status not in SOUND or finding.axis in ("cuda_graphs", "prefill", "attention"):
                counted = "" if finding.expected is None else f" {finding.reached} of {finding.expected}"
                print(f"  {finding.axis}: {row.status}{counted}; {finding.proof[:220]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arms", nargs="+")
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--new", type=int, default=0, help="tokens, or passes of an encoder: default 16 and 100")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one-by-one", action="store_true")
    parser.add_argument("--no-proof", action="store_true")
    asked = parser.parse_args()
    facts = resolve(asked.model)
    new = asked.new or (100 if facts.kind == "encoder" else 16)
    work = Workload(prompt="", prompt_tokens=asked.tokens, max_new_tokens=new, batch_size=asked.batch, ignore_eos=True)
    arms = [Arm(text, facts, work) for text in asked.arms]
    for blocked in (one for one in arms if one.checked.blocked):
        print(f"{blocked.text}: refused: {blocked.checked.blocked[0].reason}")
    runnable = [one for one in arms if not one.checked.blocked]
    for _, group in itertools.groupby(runnable, lambda one: one.checked.plan.load_key):
        turns = list(group)
        worker = LocalWorker(turns[0].checked.plan.load)
        order = [one for _ in range(asked.rounds) for one in turns]
        for one in sorted(order, key=turns.index) if asked.one_by_one else order:
            one.run(worker)
        for one in turns:
            one.tell()
        for one in () if asked.no_proof else turns:
            one.run(worker, prove=True)
            one.tell_rows()
        del worker


if __name__ == "__main__":
    main()
