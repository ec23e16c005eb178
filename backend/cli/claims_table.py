"""Claims as text for a terminal: a line each, or one in detail."""

from backend.claims.view import ClaimsDocument, ClaimView, OnMachine
from backend.cli.run_table import joined
from backend.terminal import Column, Screen, fold, table

_COLUMNS = (
    Column("Claim", prose=True),
    Column("Claimed", right=True),
    Column("Measured", right=True, optional=True),
    Column("Verdict"),
    Column(below=True),
)
_FIGURES = (
    Column("Figure", prose=True),
    Column("Claimed", right=True),
    Column("Measured", right=True),
    Column("", prose=True, optional=True),
)

_LEGEND = (
    "Claimed and Measured show a claim's first figure, with its 95% interval in parentheses (of bytes: least to most); "
    "a verdict counts all of them."
)


def claims_text(document: ClaimsDocument, screen: Screen, detailed: bool) -> str:
    """A line for each claim with its verdict, or everything about one."""
    if detailed:
        return joined(_detail(document.claims[0], screen))
    counts = ", ".join(f"{count} {word}" for word, count in document.counts.items() if count)
    head = f"{len(document.claims)} claims: {counts}. {_LEGEND}"
    blocks = [fold(head, screen.columns)]
    families = dict.fromkeys(claim.family_title for claim in document.claims)
    for title in families:
        rows = [
            [claim.name, claim.claimed or "-", claim.measured or "-", claim.word, _short(claim)]
            for claim in document.claims
            if claim.family_title == title
        ]
        blocks.append([screen.paint(title, "bold"), *table(_COLUMNS, rows, screen)])
    return joined(blocks)


def _word(found: ClaimView | OnMachine) -> str:
    return f"{found.word}: {found.remark}" if found.remark else found.word


def _short(claim: ClaimView) -> str:
    """What it says, and what the verdict rests on, or why nothing was measured where nothing was."""
    if not claim.machines:
        return f"{claim.title}. {claim.sentence}"
    return f"{claim.title}.\n{claim.remark[0].upper()}{claim.remark[1:]}." if claim.remark else f"{claim.title}."


def _detail(claim: ClaimView, screen: Screen) -> list[list[str]]:
    head = [screen.paint(line, "bold") for line in fold(claim.title, screen.columns)]
    head += fold(f"Source: {claim.document}, {claim.place}.", screen.columns)
    head += fold(f"It says: {claim.said}", screen.columns)
    if claim.differs:
        head += fold(f"Our test differs: {claim.differs}", screen.columns)
    blocks = [head, [screen.paint(_word(claim), "bold"), *fold(claim.sentence, screen.columns)]]
    blocks += [_machine(one, screen) for one in claim.machines]
    for device, lines in claim.commands.items():
        blocks.append(
            [f"Measured {'on a GPU' if device == 'cuda' else 'on a CPU'} with:", *(f"  {line}" for line in lines)]
        )
    return blocks


def _machine(found: OnMachine, screen: Screen) -> list[str]:
    title = fold(f"{found.machine}, {found.date} ({found.versions}): {_word(found)}", screen.columns)
    rows = [[one.title, one.claimed or "-", one.measured, one.standing] for one in found.figures]
    doubts = [line for doubt in found.doubts for line in fold(doubt, screen.columns)]
    return [screen.paint(title[0], "bold"), *title[1:], *table(_FIGURES, rows, screen), *doubts]
