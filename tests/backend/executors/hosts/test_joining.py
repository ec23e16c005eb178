"""A machine that joins, both ends over a real connection: who may take part, and what each user is told."""

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from backend import hardware
from backend.errors import InputError
from backend.executors.hosts import guest, lobby, wire
from backend.executors.hosts.endpoint import Endpoint
from backend.executors.hosts.guest import Ended, Guest
from backend.executors.hosts.lobby import Lobby
from backend.executors.hosts.model import digest_of
from backend.executors.hosts.wire import Accepted, Begin, Goodbye, Hello, Left, Lost, Terms, Wire
from backend.models import resolve
from tests.support.ports import free_port
from tests.support.processes import wait_for

Open = Callable[..., Lobby]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a lobby for two machines with one rank each, by default. It waits 20 s for the others."""
    monkeypatch.setenv("TOKENDYNO_DEADLINE_S", "20")
    found: list[Lobby] = []

    def open_one(hosts: int = 2, ranks: int = 1, model: str = "pocket", like: str = "pocket") -> Lobby:
        device = hardware.detect().device
        endpoint = Endpoint("127.0.0.1", free_port())
        found.append(Lobby(endpoint, hosts, ranks, model, digest_of(resolve(like)), device, said.put))
        return found[-1]

    said: queue.Queue[str] = queue.Queue()
    open_one.said = said  # type: ignore[attr-defined]
    yield open_one
    for one in found:
        one.close()


def join(endpoint: Endpoint, knock_s: float = 5.0) -> tuple[threading.Thread, "queue.SimpleQueue[object]"]:
    """A guest in a thread; what it said, and at last how it ended: None, or the exception."""
    told: queue.SimpleQueue[object] = queue.SimpleQueue()

    def serve() -> None:
        try:
            Guest(endpoint, None, told.put).serve(knock_s)
            told.put(None)
        except Exception as error:
            told.put(error)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread, told


def receive(first: Lobby) -> threading.Thread:
    """Whoever comes, in a thread, until the lobby is closed."""

    def gather() -> None:
        with contextlib.suppress(InputError, OSError):
            first.gather()

    thread = threading.Thread(target=gather, daemon=True)
    thread.start()
    return thread


def last(thread: threading.Thread, told: "queue.SimpleQueue[object]") -> object:
    thread.join(20)
    assert not thread.is_alive()
    found: object = None
    while not told.empty():
        found = told.get()
    return found


def knock(first: Lobby, **other: int | str) -> Wire:
    """A machine that asks to join, by hand."""
    link = Wire(socket.create_connection((first.endpoint.host, first.endpoint.port)))
    hello = Hello("node-b", hardware.versions(), hardware.detect().device, 64, 1 << 30)
    link.send(msgspec.structs.replace(hello, **other))
    return link


def test_a_machine_joins_is_told_what_it_serves_and_is_let_go(opened: Open) -> None:
    first = opened()
    thread, told = join(first.endpoint)
    first.gather()
    (far,) = first.far
    assert far.devices == hardware.detect().devices and far.free_bytes > 0
    said = str(told.get(timeout=5))
    assert "machine 2 of 2: serves rank 1 of 2 of pocket" in said and "through lo" in said
    first.close()
    assert last(thread, told) is None


def test_a_machine_is_told_why_the_run_failed(opened: Open) -> None:
    first = opened()
    thread, told = join(first.endpoint)
    first.gather()
    first.close("no room")
    error = last(thread, told)
    assert isinstance(error, Ended) and "no room" in str(error)


@pytest.mark.parametrize("package", ["tokendyno", "torch", "transformers"])
def test_other_versions_are_refused_with_both(opened: Open, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    own = hardware.versions()
    monkeypatch.setattr(hardware, "versions", lambda: own | {package: "0.0.9"})
    monkeypatch.setattr(lobby, "versions", lambda: own)
    first = opened()
    receive(first)
    error = last(*join(first.endpoint))
    assert (
        isinstance(error, InputError) and f"{package} 0.0.9" in str(error) and own[package].split("+")[0] in str(error)
    )


def test_the_build_of_torch_may_differ(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    own = hardware.versions()
    monkeypatch.setattr(lobby, "versions", lambda: own | {"torch": own["torch"].split("+")[0] + "+other"})
    first = opened()
    thread, told = join(first.endpoint)
    first.gather()
    first.close()
    assert last(thread, told) is None


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"ranks": 4096}, "for 4096 ranks"),
        ({"model": "no-such-model"}, "is not on"),
        ({"like": "random:gpt2"}, "is another model on"),
    ],
)
def test_what_a_machine_lacks_is_told_on_both(opened: Open, asked: dict[str, int | str], says: str) -> None:
    first = opened(**asked)
    receive(first)
    error = last(*join(first.endpoint))
    assert isinstance(error, InputError) and says in str(error), error
    assert says in opened.said.get(timeout=5)  # type: ignore[attr-defined]


def test_machines_that_do_not_come_are_waited_for_no_longer_than_said(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENDYNO_DEADLINE_S", "0.3")
    with pytest.raises(InputError, match=r"0 of 2 further machines joined within 0\.3 s\. Run `tokendyno join"):
        opened(hosts=3).gather()


def test_nobody_at_the_endpoint() -> None:
    thread, told = join(Endpoint("127.0.0.1", free_port()), knock_s=0.0)
    error = last(thread, told)
    assert isinstance(error, InputError) and "Nobody answers at 127.0.0.1" in str(error)


def test_something_else_at_the_endpoint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread, told = join(Endpoint("127.0.0.1", server.getsockname()[1]))
        other, _ = server.accept()
        other.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        error = last(thread, told)
        other.close()
    assert isinstance(error, InputError) and "something else uses the port" in str(error)


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(InputError, match=f"Port {port} is in use on 127.0.0.1"):
            Lobby(Endpoint("127.0.0.1", port), 2, 1, "pocket", "", "cpu", print)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(InputError, match="Give an address of this machine"):
        Lobby(Endpoint("192.0.2.1", free_port()), 2, 1, "pocket", "", "cpu", print)


@pytest.mark.parametrize(
    "says", [b"GET / HTTP/1.1\r\n\r\n", b"", b'{"type":"beat"}\n', b"x" * (1 << 17), b'{"type":"\xff"}\n']
)
def test_strangers_keep_nobody_waiting(opened: Open, monkeypatch: pytest.MonkeyPatch, says: bytes) -> None:
    monkeypatch.setattr(wire, "SILENCE_S", 60.0)
    first = opened()
    strangers = [socket.create_connection((first.endpoint.host, first.endpoint.port)) for _ in range(3)]
    for stranger in strangers:
        stranger.sendall(says)
    thread, told = join(first.endpoint)
    begin_s = time.monotonic()
    first.gather()
    assert time.monotonic() - begin_s < 10
    first.close()
    for stranger in strangers:
        if says.endswith(b"\n") and b"beat" not in says:
            stranger.settimeout(10)
            with contextlib.suppress(ConnectionResetError):
                assert stranger.recv(1) == b"", "it was hung up on"
        stranger.close()
    assert last(thread, told) is None


def test_one_that_only_beats_is_hung_up_on(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lobby, "ANSWER_S", 0.3)
    first = opened()
    gathered = receive(first)
    silent = knock(first)
    assert isinstance(silent.read(), Terms)
    thread, told = join(first.endpoint)
    gathered.join(10)
    assert [far.devices for far in first.far] == [hardware.detect().devices], "the one that answered has the place"
    assert "has not answered for 0.3 s" in opened.said.get(timeout=5)  # type: ignore[attr-defined]
    first.close()
    assert last(thread, told) is None
    silent.close()


def test_a_place_that_was_left_is_given_again_and_no_place_twice(opened: Open) -> None:
    first = opened(hosts=4)
    receive(first)
    ends: list[Wire] = []
    for expected in (1, 2, 1, 3):
        link = knock(first)
        terms = link.read()
        assert isinstance(terms, Terms) and terms.host == expected
        link.send(Accepted())
        wait_for(lambda asked=expected: asked in [seat.host for seat in first._seats], 5, "a seat")  # type: ignore[misc]
        if len(ends) == 1:
            ends[0].send(Left("was stopped there"))
            wait_for(lambda: [seat.host for seat in first._seats] == [2], 5, "the first to be gone")
        ends.append(link)
    assert len(first.far) == 3
    for link in ends:
        link.close()


@pytest.mark.parametrize("wrong", [{"devices": -1}, {"devices": 1 << 20}, {"free_bytes": -1}, {"name": "x" * 999}])
def test_what_no_machine_has_is_no_hello(opened: Open, wrong: dict[str, int | str]) -> None:
    first = opened()
    receive(first)
    knock(first, **wrong)
    assert "A machine does not speak as tokendyno does" in opened.said.get(timeout=5)  # type: ignore[attr-defined]
    assert not first.far


def test_a_name_cannot_steer_the_terminal(opened: Open) -> None:
    first = opened()
    receive(first)
    link = knock(first, name="node\x1b[2J\x07-b")
    assert isinstance(link.read(), Terms)
    link.send(Accepted())
    assert opened.said.get(timeout=5).startswith("node-b has joined")  # type: ignore[attr-defined]
    assert first.far[0].name == "node-b"
    link.close()


@pytest.mark.parametrize("wrong", [{"ranks": 1 << 15}, {"ranks": 0}, {"host": 0}, {"host": 2}, {"device": "tpu"}])
def test_terms_that_this_machine_cannot_have_been_given_are_refused(wrong: dict[str, int | str]) -> None:
    terms = Terms(1, 2, 1, "pocket", digest_of(resolve("pocket")), hardware.detect().device)
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread, told = join(Endpoint("127.0.0.1", server.getsockname()[1]))
        other = Wire(server.accept()[0])
        other.send(msgspec.structs.replace(terms, **wrong))
        error = last(thread, told)
        other.close()
    assert isinstance(error, InputError) and "does not speak as tokendyno does" in str(error)


def test_a_group_that_begins_ends_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[object] = []

    class Ranks:
        def __init__(self, *_: object) -> None: ...

        def end(self) -> None:
            ended.append(self)

    monkeypatch.setattr(guest, "RankGroup", Ranks)
    terms = Terms(1, 2, 1, "pocket", digest_of(resolve("pocket")), hardware.detect().device)
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread, told = join(Endpoint("127.0.0.1", server.getsockname()[1]))
        other = Wire(server.accept()[0])
        for frame in (terms, Begin(1), Begin(2), Goodbye()):
            other.send(frame)
        assert last(thread, told) is None
        other.close()
    assert len(set(map(id, ended))) == 2


# --- a group ----------------------------------------------------------------------------------------


class Told:
    """Stands where the first machine's ranks would."""

    def __init__(self) -> None:
        self.causes: queue.SimpleQueue[str] = queue.SimpleQueue()

    def lost(self, cause: str) -> None:
        self.causes.put(cause)


def other_end(first: Lobby) -> Wire:
    """A machine that has joined, by hand."""
    link = knock(first)
    gathered = receive(first)
    assert isinstance(link.read(), Terms)
    link.send(Accepted())
    gathered.join(5)
    return link


def test_ranks_that_die_elsewhere_end_the_group_with_their_cause(opened: Open) -> None:
    first, ranks, later = opened(), Told(), Told()
    link = other_end(first)
    assert first.begin(ranks) == ""
    link.send(Lost(1, "Rank 1 was killed by SIGKILL."))
    assert ranks.causes.get(timeout=5) == "On node-b: Rank 1 was killed by SIGKILL."
    first.finish(ranks)
    assert first.begin(later) == ""
    link.send(Lost(1, "told of an earlier group"))
    link.send(Lost(2, "Rank 1 exited with code 1."))
    assert later.causes.get(timeout=5) == "On node-b: Rank 1 exited with code 1."
    assert ranks.causes.empty()
    link.close()
    assert "node-b closed the connection" in later.causes.get(timeout=5)
    assert "node-b closed the connection" in first.begin(ranks), "no group is begun without it"


def test_a_machine_that_leaves_or_falls_silent_ends_the_group(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "SILENCE_S", 0.6)
    monkeypatch.setattr(wire, "BEAT_S", 60.0)
    for leave, says in (
        (lambda link: link.send(Left("was stopped")), "was stopped"),
        (lambda _: None, "has not answered"),
    ):
        first, ranks = opened(), Told()
        link = other_end(first)
        first.begin(ranks)
        leave(link)
        assert f"node-b {says}" in ranks.causes.get(timeout=5)
        link.close()


def test_beats_keep_a_quiet_connection(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "SILENCE_S", 0.6)
    monkeypatch.setattr(wire, "BEAT_S", 0.1)
    first, ranks = opened(), Told()
    link = other_end(first)
    first.begin(ranks)
    with contextlib.suppress(queue.Empty):
        raise AssertionError(ranks.causes.get(timeout=1.5))
    link.close()


def test_another_folder_with_the_same_files_is_the_same_model(tmp_path: Path) -> None:
    own = resolve("pocket")
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in Path(own.source.path).iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    there = digest_of(resolve(str(copy)))
    assert there != digest_of(own), "one comes with tokendyno, the other does not"
    again = tmp_path / "again"
    copy.rename(again)
    assert digest_of(resolve(str(again))) == there
    (again / "config.json").write_text((again / "config.json").read_text() + " ")
    assert digest_of(resolve(str(again))) != there
