"""All ledgers in one line."""

from types import SimpleNamespace
from typing import Any

from tokendyno.backend.evidence import Evidence, Finding, Status
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.views.ledger import LedgerRow, ledger_digest, ledger_rows, ledger_summary, rows_of


def row(axis: str, status: Status = "verified", effective: str = "x") -> LedgerRow:
    return LedgerRow(axis, "auto", effective, effective, "seen", status, "", None, None)


def test_an_axis_counts_once_by_its_worst_row_and_what_differs_is_named() -> None:
    a = [row("cache"), row("dtype"), row("compile", "off"), row("attention", "not_applicable")]
    b = [row("cache", effective="static"), row("dtype", "partial"), row("compile", "verified", "default"), a[3]]
    digest = ledger_digest({"A": a, "B": b})
    assert digest is not None
    assert digest.line == "2 verified, 1 partial, 1 not applicable; A and B differ in KV cache and torch.compile"
    assert digest.shown == ["cache", "dtype", "compile"] and digest.status == "partial"
    assert digest.titles["cache"] == "KV cache"


def test_equal_ledgers_show_no_row() -> None:
    digest = ledger_digest({"A": [row("cache")], "B": [row("cache")]})
    assert digest is not None and digest.shown == []
    assert digest.line == "1 verified; A and B ran the same choices"


def test_nothing_is_said_to_differ_before_both_arms_have_ended() -> None:
    digest = ledger_digest({"A": [row("cache", "failed")], "B": []})
    assert digest is not None and (digest.line, digest.shown, digest.status) == ("1 failed", ["cache"], "failed")
    assert ledger_digest({"A": [], "B": []}) is None


def test_a_single_prompt_has_no_rows_of_axes_about_many_requests() -> None:
    of_many = next(axis for axis in all_axes() if axis.many_requests)
    idle = Evidence("off", "off", Finding(of_many.name, "off", "one request", outcome="not_applicable"))
    cache = Evidence("dynamic", "dynamic", Finding("cache", "dynamic", "seen"))
    for traffic, shown in ((None, ["cache"]), (object(), [of_many.name, "cache"])):
        run: Any = SimpleNamespace(request=SimpleNamespace(traffic=traffic), ledgers={"A": [idle, cache]})
        assert [row.axis for row in rows_of(run, "A")] == shown


def test_tokens_that_could_not_be_checked_are_counted_apart_and_named() -> None:
    tokens = Evidence("greedy", "greedy", Finding("tokens", "greedy", "the text is sampled", outcome="unchecked"))
    rows = [row("cache"), *ledger_rows([tokens]), row("compile", "off")]
    assert ledger_summary(rows) == "1 of 3 verified, 1 unchecked, 1 off"
    digest = ledger_digest({"A": rows})
    assert digest is not None and (digest.shown, digest.status, digest.titles["tokens"]) == (
        ["tokens"],
        "unchecked",
        "Tokens",
    )
