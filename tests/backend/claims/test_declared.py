"""The claims that come with the project: well-formed, tested by commands of this project, with results that follow."""

import re

import pytest

from tokendyno.backend.claims.declared import DOCUMENTS, ClaimTest, shipped_claims
from tokendyno.backend.claims.results import RESULTS, file_of, read_results
from tokendyno.backend.claims.view import claim_view
from tokendyno.backend.cli.claims import request_of
from tokendyno.backend.errors import InputError

CLAIMS = shipped_claims()


@pytest.mark.parametrize("test", CLAIMS.tests.values(), ids=lambda test: str(test.name))
def test_the_command_of_a_test_is_one_of_ours(test: ClaimTest) -> None:
    *before, anew = re.split("; (?:do )?", test.line.removesuffix("; done"))  # lines of a shell
    asked = request_of(test, "FOLDER" if test.loads else test.model)
    assert asked.model in anew and len(asked.arms) == (1 if test.command == "run" else 2)
    assert asked.workload.repeats == (1 if test.command == "quality" else test.repeats)
    if times := test.loads or test.starts:
        assert before.pop() == f"for n in $(seq {times})"
    assert [line.partition(" -m ")[2].split()[1:] for line in before] == [[test.model, "FOLDER"]] * bool(test.loads)


def test_there_are_enough_claims_and_every_test_is_of_use() -> None:
    assert len(CLAIMS.claims) >= 16
    used = {name for claim in CLAIMS.claims for figure in claim.figures for name in (figure.test, figure.over)}
    assert set(CLAIMS.tests) == used - {""}


def test_names_are_given_once_and_what_is_compared_can_be() -> None:
    names = [one.name for one in CLAIMS.families] + [one.name for one in CLAIMS.claims]
    assert len({*names}) == len(names) and len(CLAIMS.tests) == sum(len(one.test) for one in CLAIMS.families)
    for claim in CLAIMS.claims:
        assert claim.document in DOCUMENTS and bool(claim.figures) != bool(claim.untested), claim.name
        assert not claim.figures or any(one.decides for one in claim.figures), claim.name
        for one in claim.figures:
            test, over = CLAIMS.tests[one.test], CLAIMS.tests[one.over or one.test]
            assert test.device == over.device and (one.form == "value" or "B" in test.arms), claim.name
            assert one.low is None or one.high is None or one.low < one.high, claim.name


def test_nothing_is_said_word_for_word() -> None:
    """`said` is in our own words: no long run of quotation."""
    assert all(not re.search(r"[\"“”]", claim.said) and claim.place for claim in CLAIMS.claims)


def test_every_kept_result_is_of_a_test_and_in_its_own_file() -> None:
    """Reading leaves out what another command measured."""
    found = [result for results in read_results(CLAIMS.tests).values() for result in results]
    assert {file_of(result.test, result.machine) for result in found} == set(RESULTS.glob("*.json"))


def test_names_of_claims_and_families_select_in_their_order() -> None:
    (one,) = CLAIMS.named(["kv-half"])
    assert one.name == "kv-half" and {claim.name for claim in CLAIMS.named(["kv-cache"])} >= {"kv-half", "kv-speed"}
    assert [claim.name for claim in CLAIMS.named(["kv-speed", "cuda-graphs"])] == ["kv-speed", "cuda-graphs"]
    with pytest.raises(InputError, match="Did you mean"):
        CLAIMS.named(["kv-hall"])
    assert [test.device for test in CLAIMS.tests_of([one], "cpu")] == ["cpu"]


def test_where_attention_is_eager_in_both_arms_the_claim_says_why() -> None:
    """The documents have no eager attention in mind."""
    for claim in CLAIMS.claims:
        tests = CLAIMS.tests_of([claim], "cuda")
        both = [one for one in tests if one.a and one.b and "attention=eager" in one.a and "attention=eager" in one.b]
        if both and CLAIMS.family_of(claim).name != "quantization":
            assert "cuDNN" in claim_view(CLAIMS, claim, {}).differs, claim.name
    own = next(claim for claim in CLAIMS.claims if claim.name == "kv-plateau")
    assert claim_view(CLAIMS, own, {}).differs.startswith(f"{own.differs} Attention is eager")
