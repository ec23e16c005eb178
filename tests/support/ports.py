"""A free port for a server that a test or a benchmark starts."""

import socket


def free_port() -> int:
    """A TCP port of the loopback interface that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
