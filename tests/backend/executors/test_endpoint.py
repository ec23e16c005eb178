"""Addresses of the first machine, as they are typed."""

import psutil
import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.several_machines import Endpoint, interface_to, parse_endpoint


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("10.0.0.1:29500", "10.0.0.1", 29500), (" node-a:1 ", "node-a", 1), ("[fd00::1]:65535", "fd00::1", 65535)],
)
def test_host_and_port_are_read_and_written_alike(text: str, host: str, port: int) -> None:
    assert parse_endpoint(text) == Endpoint(host, port)
    assert str(parse_endpoint(text)) == text.strip()


@pytest.mark.parametrize("text", ["", "10.0.0.1", ":29500", "node:", "node:0", "node:65536", "node:http"])
def test_what_is_no_endpoint_is_told_how_one_looks(text: str) -> None:
    with pytest.raises(InputError, match=r"192\.168\.1\.10:29500"):
        parse_endpoint(text)


def test_each_address_of_this_machine_is_reached_through_the_interface_that_has_it() -> None:
    """What leaves for an own address leaves from it."""
    for name, addresses in psutil.net_if_addrs().items():
        for one in addresses:
            if one.family.name == "AF_INET":
                assert interface_to(Endpoint(one.address, 29500)) == name
    assert interface_to(Endpoint("localhost", 29500)) == interface_to(Endpoint("127.0.0.2", 29500)) != ""
    assert interface_to(Endpoint("no-such-host.invalid", 29500)) == ""
