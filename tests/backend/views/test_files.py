import gzip

from tests.support.small_runs import begun, fill
from tokendyno.backend.messages import GraphCode, Proved, decode_event, encode
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.views.sentences import code_words
from tokendyno.backend.views.share import code_file


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
