"""Channels: lines that never mix, phases that begin and end, and a broken pipe that is somebody else's decision."""

import os
import threading

from tokendyno.backend.messages import Event, Progress, Samples, decode_event
from tokendyno.backend.worker.channel import PipeChannel, QueueChannel


def test_lines_of_several_threads_do_not_mix() -> None:
    read, write = os.pipe()
    channel = PipeChannel(write, broken=lambda: None)
    event = Samples([0.5] * 3000, list(range(3000)))  # longer than a pipe writes at once

    def send_all() -> None:
        for _ in range(20):
            channel.send(event)

    writers = [threading.Thread(target=send_all) for _ in range(4)]
    for writer in writers:
        writer.start()
    with os.fdopen(read, "rb") as lines:
        assert [decode_event(next(lines)) for _ in range(80)] == [event] * 80
        for writer in writers:
            writer.join()
    os.close(write)


def test_a_broken_pipe_is_reported_and_ends_nothing() -> None:
    read, write = os.pipe()
    os.close(read)
    broken: list[str] = []
    PipeChannel(write, broken=lambda: broken.append("nobody reads")).send(Samples([0.0], [1]))
    os.close(write)
    assert broken == ["nobody reads"]


def test_a_phase_begins_steps_and_ends_and_is_remembered() -> None:
    events: list[Event] = []
    channel = QueueChannel(events.append)
    assert str(channel.phase) == "start"
    with channel.phasing("load", "folder") as steps:
        steps.step(0.5, "half")
    assert str(channel.phase) == "load"
    told = [(e.state, e.fraction, e.note) for e in events if isinstance(e, Progress)]
    assert told == [("begin", None, "folder"), ("step", 0.5, "half"), ("end", 1.0, "")]
