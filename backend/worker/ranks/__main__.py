"""Entry of one rank: `python -m tokendyno.backend.worker.ranks LAUNCHER_PID FOLDER SHARE`. torch's launcher starts it.

All ranks have the pipes of the process that launched them, but only rank 0 reads commands, which it passes on, and
writes events. A Cancel reaches rank 0 alone: whether a step is the last is agreed on at every step.
"""

import os
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tokendyno.backend.worker.process import (
    die_with_parent,
    frozen_imports,
    guard_group,
    keep_events_apart,
    settle_heap,
)
from tokendyno.backend.worker.ranks.launch import Share

if TYPE_CHECKING:
    from tokendyno.backend.worker.channel import Commands
    from tokendyno.backend.worker.ranks.member import Member

LOST = 3
"""Exit code of a rank that nobody commands any more: the launcher then ends the others."""


def read_commands(commands: "Commands", member: "Member") -> None:
    """Body of rank 0's reading thread. The end of the pipe means that the engine is gone."""
    from tokendyno.backend.messages import Cancel, decode_command

    number = 0
    try:
        for line in sys.stdin.buffer:
            command = decode_command(line)
            if not isinstance(command, Cancel):
                member.pass_on(number, command)
                number += 1
            commands.put(command)
    except Exception:
        traceback.print_exc()
    os._exit(LOST)


def follow(commands: "Commands", member: "Member") -> None:
    try:
        for command in member.commands():
            commands.put(command)
    except Exception as error:  # the launcher's store is gone
        from tokendyno.backend.worker.ranks.member import GONE

        sys.stderr.write(f"tokendyno: {GONE} ({str(error).splitlines()[0][:200]})\n")
    os._exit(LOST)


def main() -> None:
    """A rank of the machine on which the engine is."""
    take_part(int(sys.argv[1]), msgspec.json.decode(sys.argv[3], type=Share), Path(sys.argv[2]))


def take_part(launcher_pid: int, share: Share, folder: Path | None = None) -> None:
    """Tie this process to the launcher before the slow imports, meet the other ranks, then serve until Shutdown.
    `folder`: where the launcher reads why a rank failed."""
    die_with_parent(launcher_pid)
    guard_group()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    events_fd = keep_events_apart()
    from tokendyno.backend.worker import group
    from tokendyno.backend.worker.channel import Commands, PipeChannel
    from tokendyno.backend.worker.compiler.own_cache import name_folder

    name_folder()
    from tokendyno.backend.worker.ranks.member import FAILURE, AgreedCancel, Member, meet, watch_beats

    def leave(reason: str) -> None:
        if folder is None:
            sys.stderr.write(f"tokendyno: {reason}\n")
        else:
            (folder / f"{FAILURE}{rank}").write_text(reason, encoding="utf-8")
        os._exit(LOST)

    meet(rank, size, leave, share.hello)
    with frozen_imports():
        from tokendyno.backend.worker.serve import serve

    settle_heap()
    member = Member(rank, size, folder, share, leave)
    if share.hosts > 1:
        threading.Thread(target=watch_beats, args=(rank, size, share.ranks, leave), name="watch", daemon=True).start()
    group.join(member)
    commands = Commands()
    read = read_commands if rank == 0 else follow
    threading.Thread(target=read, args=(commands, member), name="commands", daemon=True).start()
    null_fd = os.open(os.devnull, os.O_WRONLY)  # the events of the other ranks would repeat those of rank 0
    channel = PipeChannel(events_fd if rank == 0 else null_fd, broken=lambda: os._exit(LOST))
    serve(commands, channel, cancelled=AgreedCancel(commands.cancelled, member))
    os._exit(0)


if __name__ == "__main__":
    main()
