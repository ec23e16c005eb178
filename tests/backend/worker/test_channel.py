"""Lines that several threads write to a channel never mix."""

import os
import threading

from tokendyno.backend.messages import Samples, decode_event
from tokendyno.backend.worker.channel import PipeChannel


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
