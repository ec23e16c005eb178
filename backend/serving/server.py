"""uvicorn with an end in good order: what runs is completed, nothing begins."""

import logging
import socket
import time
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from tokendyno.backend.cli.progress import say
from tokendyno.backend.serving.stream import Turns

KEEP_ALIVE_S = 30
LAST_BYTES_S = 5
"""How long clients may take to read the rest."""


class DrainingServer(uvicorn.Server):
    """Serves until a signal; then requests in progress may take `drain_s` seconds, and further ones get status 503. A
    second signal ends it at once. `ready`: what is printed once it answers."""

    def __init__(self, app: Starlette, turns: Turns, drain_s: float, ready: str) -> None:
        logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=LAST_BYTES_S,
        )
        super().__init__(config)
        self._turns, self._drain_s, self._ready = turns, drain_s, ready
        self._until_s: float | None = None
        self._announced = False

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        print(self._ready, flush=True)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """uvicorn would raise the signal again at its end; the exit code is 0 here."""
        now_s = time.monotonic()
        self._until_s = now_s if self._turns.closed else now_s + self._drain_s
        self._turns.closed = True

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second; True ends it."""
        await super().on_tick(counter)
        if self._until_s is None:
            return False
        if self._turns.inside and time.monotonic() < self._until_s:
            if not self._announced:
                self._announced = True
                say(f"stopping: what runs may take {self._drain_s:g} s; Ctrl-C again ends it now.")
            return False
        for generation in list(self._turns.running):
            generation.cut()
        return True
