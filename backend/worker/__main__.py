"""Entry of a worker process: `python -m tokendyno.backend.worker`.

Commands arrive on standard input, events leave on standard output. Anything else that prints (libraries, compilers)
is redirected to standard error, so that no stray line can corrupt the stream of events.
"""

import os
import sys
import threading
import traceback
from typing import TYPE_CHECKING

from tokendyno.backend.worker.process import frozen_imports, guard_group, keep_events_apart, settle_heap

if TYPE_CHECKING:
    from tokendyno.backend.worker.channel import Commands


def read_commands(commands: "Commands") -> None:
    """Body of the reading thread: exits the process when the pipe ends, with code 1 for an unreadable command."""
    from tokendyno.backend.messages import decode_command

    code = 1
    try:
        for line in sys.stdin.buffer:
            commands.put(decode_command(line))
        code = 0
    except Exception:
        traceback.print_exc()
    os._exit(code)


def work(forked: bool = False) -> None:
    """Serve until Shutdown; never returns. `forked`: from a process that has done the imports (see `template`)."""
    guard_group(commands=0)
    events_fd = keep_events_apart()
    from tokendyno.backend.worker.channel import Commands, PipeChannel
    from tokendyno.backend.worker.compiler.own_cache import name_folder

    name_folder()
    with frozen_imports():
        from tokendyno.backend.worker.serve import serve  # torch and transformers: `Ready` reports how long
    settle_heap()
    commands = Commands()
    threading.Thread(target=read_commands, args=(commands,), name="commands", daemon=True).start()
    serve(commands, PipeChannel(events_fd, broken=lambda: os._exit(0)), forked=forked)
    os._exit(0)  # without waiting for threads, compilers or atexit handlers


if __name__ == "__main__":
    work()
