"""Events in columns come out as they went in, and a thread's in the order in which they contain each other."""

import tracemalloc

from tokendyno.backend.worker.prove.spans import Span, Spans

GIVEN = [
    Span("aten::mm", 5, 9, id=3, thread=7),
    Span("kernel", 6, 8, True, (), 3, 11, 0),
    Span("aten::bmm", 1, 4, shapes=((2, 3), (3, 4)), thread=7),
    Span("outer", 5, 12, thread=7),
    Span("elsewhere", 2, 3, thread=8),
]


def test_what_was_added_comes_out_again() -> None:
    assert list(Spans(GIVEN)) == GIVEN


def test_a_thread_s_events_are_sorted_and_the_one_that_contains_another_comes_first() -> None:
    assert [span.name for span in Spans(GIVEN).of_thread(7)] == ["aten::bmm", "outer", "aten::mm"]
    assert [span.name for span in Spans(GIVEN).of_thread(0)] == [], "a kernel runs on no thread of the host"
    assert list(Spans().of_thread(7)) == []


def test_they_take_less_than_half_of_what_objects_take() -> None:
    def made() -> list[Span]:
        return [Span("aten::add", 10**18 + i, 10**18 + i + 5, id=10**6 + i, thread=4) for i in range(5_000)]

    def grown(spans: object) -> int:
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    objects = made()
    as_objects = grown(objects)
    spans = Spans(objects)
    in_columns = grown(spans) - as_objects
    tracemalloc.stop()
    assert in_columns < as_objects / 2
