"""A text is passed on up to a stop, however it is cut into pieces."""

from hypothesis import given
from hypothesis import strategies as st

from tokendyno.backend.serving.stream import StopTexts


def passed(pieces: list[str], stops: list[str]) -> tuple[str, bool]:
    stop_texts, out = StopTexts(stops), ""
    for piece in pieces:
        text, met = stop_texts.feed(piece)
        out += text
        if met:
            return out, True
    return out + stop_texts.rest(), False


@given(st.lists(st.text("ab", max_size=4)), st.lists(st.text("abc", min_size=1, max_size=4), max_size=3))
def test_pieces_change_nothing(pieces: list[str], stops: list[str]) -> None:
    whole, signs = "".join(pieces), []
    ends = [whole.find(stop) + len(stop) for stop in stops if stop in whole]
    if ends:
        first = min(ends)
        longest = max(len(stop) for stop in stops if whole[:first].endswith(stop))
        expected = whole[: first - longest]
    else:
        expected = whole
    signs = list(whole)
    assert passed(pieces, stops) == passed(signs, stops) == (expected, bool(ends))


def test_nothing_is_kept_longer_than_a_stop_may_begin_in_it() -> None:
    stop_texts = StopTexts(["\n\nQ:"])
    assert [stop_texts.feed(piece)[0] for piece in ("a", "\n", "b\n", "\nQ", "x")] == ["a", "", "\nb", "", "\n\nQx"]
