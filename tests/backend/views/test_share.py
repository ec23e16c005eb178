"""What is passed on of a run: a title, the curves of a picture, and Markdown that is text and nothing else."""

import gzip

import msgspec
import pytest

from tests.browser.stored_runs import EVIL, evil, reading
from tests.support.kept_runs import made, run_on
from tests.support.runs import arm_records, created, encoder, ended, passes
from tests.support.small_runs import begun, fill
from tokendyno.backend.messages import GraphCode, Proved, decode_event, encode
from tokendyno.backend.recordings.recorded_runs import shipped_records
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.run import folded
from tokendyno.backend.views.live import first_clause
from tokendyno.backend.views.sentences import code_words
from tokendyno.backend.views.share import MOST_POINTS, code_file, command_of, markdown, shared


@pytest.mark.parametrize(
    ("sentence", "clause"),
    [
        ("B generates 1.5x faster (1.3 to 1.7), takes 12% less memory.", "B generates 1.5x faster"),
        ("B generates 12% faster at a cost of 0.012 nats.", "B generates 12% faster at a cost of 0.012 nats"),
        ("One pair of runs: B took 9% less time and writes the same text.", "One pair of runs: B took 9% less time"),
        ("No difference in speed found: B runs at 0.98 to 1.03 times A's.", "No difference in speed found"),
        ("A generates 1,230 tokens/s and takes 1.25 GiB of memory at its peak.", "A generates 1,230 tokens/s"),
        ("B has a small quality cost: over 768 positions the KL divergence is 0.1 nats.", "B has a small quality cost"),
        ("Many words without an end", "Many words without an end"),
        ("", ""),
    ],
)
def test_a_title_is_what_the_verdict_says_first(sentence: str, clause: str) -> None:
    assert first_clause(sentence) == clause


def test_what_became_of_a_run_without_a_verdict_is_said() -> None:
    going, failed = folded([created()]), folded([created(), ended("failed", "no memory")])
    assert shared(going).title.endswith(": queued") and shared(going).curves is None
    assert shared(failed).title.endswith(": failed") and shared(failed).sentence == "Failed."


def test_the_curves_are_of_what_differs_more_and_end_at_the_last_token() -> None:
    long = shared(folded([created(), *arm_records("A", 5_000), *arm_records("B", 5_000), ended()])).curves
    assert long is not None and all(len(line) <= MOST_POINTS + 1 and line[-1][0] == 5_000 for line in long.lines)
    halved = shared(folded(shipped_records("recorded-tensor-parallel"))).curves
    assert halved is not None and halved.title == "KV cache over tokens"
    assert halved.lines[0][-1][1] == 2 * halved.lines[1][-1][1]
    many = shared(folded(shipped_records("recorded-batching"))).curves
    assert many is not None and [line[-1][1] for line in many.lines] == [956, 956]
    encoded = shared(folded([encoder(), *passes("A", 5), ended()])).curves
    assert encoded is not None and encoded.title == "Passes over seconds"


def test_markdown_has_the_verdict_the_figures_the_machine_and_a_command_that_can_be_copied() -> None:
    fenced = shared(folded(made(run_on("mine", prompt="say ```\n# no heading"))))
    text = markdown(fenced)
    assert text.startswith("**") and "| Time to first token |" in text and fenced.machine in text
    assert f"\n````sh\n{fenced.command}\n````\n" in text
    assert not shared(folded(reading())).command, "it is the command of a run of one prompt"


def test_no_text_of_a_run_is_markup_in_its_markdown() -> None:
    run = shared(folded(evil()))
    text = markdown(run._replace(model=EVIL, sentence=EVIL, command=""))
    assert "\\<" in text and not any(sign in text.replace("\\<", "") for sign in ("<img", "<script", "<svg", "<iframe"))


def test_the_command_of_a_run_without_a_proof_asks_for_none() -> None:
    proved, unproved = (
        command_of(msgspec.structs.replace(created().request, proof=proof)).split() for proof in (True, False)
    )
    assert set(unproved) - set(proved) == {"--no-proof"} and "--no-proof" not in proved


# --- files -----------------------------------------------------------------------------------------


def test_the_code_of_a_proof_is_in_the_file_under_its_arm_and_graph_and_what_is_too_long_is_named() -> None:
    run = begun()
    for name in "AB":
        fill(run, name)
    assert code_file(run.snapshot()) == "" and code_words(run.snapshot().arms["A"].finished) == ""
    text = "def call(args):\n    return 1\n"
    code = [GraphCode("0/0", len(text), gzip.compress(text.encode())), GraphCode("0/1", 3_000_000, b"")]
    run.append(ArmEvent("B", 0, 3.0, decode_event(encode(Proved([], {}, code=code)))))
    saved = code_file(run.snapshot())
    assert "arm B, graph 0/0" in saved and text in saved and "# 3,000,000 characters: left out" in saved
    assert code_words(run.snapshot().arms["B"].finished) == "2 graphs, 3,000,029 characters; 1 kept"
