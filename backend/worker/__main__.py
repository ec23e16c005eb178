"""Entry of a worker process: `python -m backend.worker PARENT_PID`.

Commands come in on standard input, events go out on standard output. Whatever else prints (libraries,
compilers) is sent to standard error, so that no stray line can tear the stream of events.
"""

import os
import sys

from backend.worker.lifeline import die_with_parent, guard_group


def main() -> None:
    """Tie this process's life to the parent's before the slow imports, then serve."""
    die_with_parent(int(sys.argv[1]))
    guard_group()
    events_fd = os.dup(1)
    os.set_inheritable(events_fd, False)
    os.dup2(2, 1)
    from backend.worker.process import serve

    serve(events_fd)


if __name__ == "__main__":
    main()
