"""The parts of a step in words: against the bytes they must read, or why there is no trace."""

import msgspec
import pytest

from tests.support.runs import arm_records, created, ended
from tokendyno.backend.counts import StepTime
from tokendyno.backend.messages import Annotation, Finished
from tokendyno.backend.runs.records import ArmEvent, Predicted, Record, StepReads
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.card import card_of
from tokendyno.backend.views.document import document
from tokendyno.backend.views.step_time import StepText, step_text, step_tiles
from tokendyno.backend.views.tiles import arm_tiles
from tokendyno.backend.views.verdict import verdict_of

STEP = StepTime(
    3,
    0.010,
    True,
    {"attention": 0.002, "products": 0.004, "other": 0.001, "collectives": 0.0, "gaps": 0.001, "host": 0.002},
    {"rms_norm_kernel": 0.0007, "copy": 0.0003},
)
READS = StepReads(2**30, 2**20, 1e12, "measured on this machine")


def run_of(
    step: StepTime | None, why: str = "", reads: StepReads | None = READS, over: bool = True, proof: bool = True
) -> Run:
    first = created(arms=["A"])
    run = Run(msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, proof=proof)))
    records: list[Record] = arm_records("A", 20)
    for record in records:
        match record:
            case Predicted():
                record = msgspec.structs.replace(record, reads=reads)
            case ArmEvent(event=Finished() as end):
                finished = msgspec.structs.replace(end, step=step, no_step=why)
                record = msgspec.structs.replace(record, event=finished)
        run.append(record)
    if over:
        run.append(ended())
    return run


def step_of(run: Run) -> StepText | None:
    now = run.snapshot()
    return step_text(now, "A")


def test_each_part_stands_against_the_bytes_that_it_must_read() -> None:
    step = step_of(run_of(STEP))
    assert step is not None and step.text == "10.0 ms"
    assert [(part.key, part.text, part.share) for part in step.parts] == [
        ("attention", "2.00 ms", 0.2),
        ("products", "4.00 ms", 0.4),
        ("other", "1.00 ms", 0.1),
        ("gaps", "1.00 ms", 0.1),
        ("host", "2.00 ms", 0.2),
    ]
    attention, products, *others = step.parts
    assert attention.reads == "must read 1.00 MiB of KV cache, 0.00105 ms at 1,000 GB/s (measured on this machine)"
    assert products.reads_s == pytest.approx(2**30 / 1e12) and "1.00 GiB of weights, 1.07 ms" in products.reads
    assert not any(part.reads for part in others)
    assert step.said == "3 traced steps of 10.0 ms; most of other: rms_norm_kernel 0.700 ms, copy 0.300 ms"


@pytest.mark.parametrize(
    ("traced_s", "products_s", "rest_s", "says"),
    [
        (
            0.040,
            0.010 * 4 / 7,
            0.0,
            "the measured 10.0 ms per token, split as 3 traced steps of 40.0 ms each under the profiler",
        ),
        (0.005, 0.002, 0.005, "3 traced steps of 5.00 ms leave the rest of the measured 10.0 ms per token unexplained"),
    ],
)
def test_parts_end_at_the_measured_step(traced_s: float, products_s: float, rest_s: float, says: str) -> None:
    """The run takes 10 ms a token, whatever the profiler made of it."""
    parts = {part: took * traced_s / 0.010 for part, took in STEP.parts_s.items()}
    step = step_of(run_of(msgspec.structs.replace(STEP, seconds=traced_s, parts_s=parts)))
    assert step is not None and step.seconds == pytest.approx(0.010) and says in step.said
    took = {part.key: part.seconds or 0.0 for part in step.parts}
    assert took["products"] == pytest.approx(products_s) and took.get("unexplained", 0.0) == pytest.approx(rest_s)
    assert sum(took.values()) == pytest.approx(step.seconds)
    assert sum(part.share for part in step.parts) == pytest.approx(1)


def test_a_profiler_slows_the_host_and_not_the_kernels() -> None:
    """Of 12 ms a traced step, 4 the host: 10 ms a token leave it 2, and kernels what they took."""
    step = step_of(run_of(msgspec.structs.replace(STEP, seconds=0.012, parts_s=STEP.parts_s | {"host": 0.004})))
    assert step is not None and "under the profiler, which slows the host" in step.said
    took = {part.key: part.seconds for part in step.parts}
    assert took == {"attention": 0.002, "products": 0.004, "other": 0.001, "gaps": 0.001, "host": pytest.approx(0.002)}


def test_what_was_compiled_during_the_run_is_a_part_of_its_own_and_said_beside_the_mean() -> None:
    """Of 19 steps of 10 ms: 95 ms and 19 ms, 6 ms of a mean step; what the warm-up compiled is no part of it."""
    run = run_of(STEP, over=False)
    for token, seconds in ((0, 9.0), (4, 0.095), (9, 0.019)):
        run.append(ArmEvent("A", 0, 1.0, Annotation("recompile", token, 0.0, seconds, "compiled again")))
    run.append(ended())
    now, step = run.snapshot(), step_of(run)
    assert step is not None
    took = {part.key: part.seconds or 0.0 for part in step.parts}
    assert took["compiling"] == pytest.approx(0.006) and took["products"] == pytest.approx(0.004 * 4 / 7)
    assert sum(took.values()) == pytest.approx(0.010) and "unexplained" not in took
    assert step.said.startswith("the measured 10.0 ms (6.00 ms of it compiling) per token, split as 3 traced steps")
    assert next(part.reads for part in step.parts if part.key == "compiling") == "2 graphs in the run, 114 ms"
    latency = next(tile for tile in arm_tiles(now, "A") if tile.key == "latency")
    assert latency.note == "6.00 ms of it compiling"
    said = "This includes compiling during the runs: 6.00 ms a token in arm A."
    assert verdict_of(now).sentence.endswith(f"at its peak. {said}")


def test_a_verdict_and_its_card_say_that_compiling_is_part_of_the_times() -> None:
    run = Run(created())
    for record in (*arm_records("A", 20), *arm_records("B", 20)):
        run.append(record)
    run.append(ArmEvent("B", 0, 1.0, Annotation("recompile", 4, 0.0, 0.095, "compiled again")))
    run.append(ended())
    card, said = card_of(run.snapshot()), "This includes compiling during the runs: 5.00 ms a token in arm B."
    assert verdict_of(run.snapshot()).sentence.endswith(f" {said}")
    assert card is not None and card.reason.endswith(said)


def test_kernels_are_named_without_their_cpp_types() -> None:
    others = {
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<...>": 0.0006,
        "aten::mul": 0.0005,
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::X>": 0.0004,
        "void at::native::elementwise_kernel<128, 2, std::array<char*, 2ul> >(int)": 0.0001,
    }
    step = step_of(run_of(msgspec.structs.replace(STEP, others=others)))
    assert step is not None and step.said.endswith(
        "most of other: elementwise_kernel 0.700 ms, aten::mul 0.500 ms, CatArrayBatchedCopy 0.400 ms"
    )


def test_a_part_that_compiled_code_fused_is_not_0_and_without_a_bandwidth_only_bytes_are_said() -> None:
    fused = msgspec.structs.replace(STEP, gpu=False, parts_s={"products": 0.004, "other": 0.004, "host": 0.002})
    step = step_of(run_of(fused, reads=StepReads(2**30, 2**20)))
    assert step is not None
    attention, products, _, host = step.parts
    assert (attention.text, attention.seconds) == ("n/a", None) and attention.reads.startswith("fused with other")
    assert products.reads == "must read 1.00 GiB of weights" and products.reads_s is None
    assert host.label == "Host (between operators)"
    tiles = {tile.key: tile for tile in step_tiles(step)}
    assert (tiles["step_attention"].value, tiles["step_products"].unit) == ("n/a", "ms, 40%")


def test_a_step_that_was_not_traced_says_why() -> None:
    untraced = step_of(run_of(None, "the run has a single token"))
    assert untraced is not None and untraced.missing == "the run has a single token" and not untraced.parts
    assert [tile.note for tile in step_tiles(untraced)] == ["the run has a single token"]
    older = step_of(run_of(None))
    assert older is not None and "recorded before" in older.missing
    assert step_of(run_of(None, over=False)) is None, "a later repeat may bring it"
    assert step_tiles(None) == []


def test_a_step_that_was_not_to_be_traced_is_said_to_be_switched_off() -> None:
    """The worker says of it what it says of a run that was stopped before its last repeat."""
    ended_early = "the run ended before it was traced"
    off = run_of(None, ended_early, proof=False)
    step, says = step_of(off), "tracing was switched off with the proof, as --no-proof does"
    assert step is not None and step.missing == says
    assert msgspec.to_builtins(document(off).arms[0])["step_time"]["missing"] == says
    stopped = step_of(run_of(None, ended_early))
    assert stopped is not None and stopped.missing == ended_early


def test_the_document_has_the_parts_or_the_reason_and_leaves_old_runs_as_they_were() -> None:
    def sent(run: Run) -> dict[str, object]:
        return dict(msgspec.to_builtins(document(run).arms[0]))

    assert sent(run_of(STEP))["step_time"] == {
        "seconds": 0.010,
        "steps": 3,
        "gpu": True,
        "parts_s": STEP.parts_s,
        "others": STEP.others,
        "weight_bytes": 2**30,
        "kv_bytes": 2**20,
        "bytes_per_s": 1e12,
        "missing": "",
    }
    assert msgspec.json.decode(msgspec.json.encode(sent(run_of(None, "why"))["step_time"]))["missing"] == "why"
    assert "step_time" not in sent(run_of(None))
