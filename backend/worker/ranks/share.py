"""Which ranks a machine runs, of how many machines, and where those meet."""

import msgspec


class Hello(msgspec.Struct, frozen=True):
    """What a machine is, so that only those take part that can work on one thing.

    versions  of the packages that must be the same on all of them
    model     a digest of the model that it has
    problem   why it cannot take part, "" where it knows of nothing
    """

    versions: dict[str, str]
    device: str
    model: str
    problem: str = ""


class Share(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The ranks of one machine.

    hosts, host   machines that share the model, and which of them this is; rank 0 is on machine 0
    endpoint      HOST:PORT of the rendezvous, on machine 0; "" where one machine has all ranks
    interface     network interface through which the others are reached, "" where torch is to find it
    hello         what this machine is; None where one machine has all ranks
    model_path    the model's folder or file on this machine, where machine 0 has it elsewhere
    kernels_path  likewise the folder of kernels
    """

    ranks: int
    hosts: int = 1
    host: int = 0
    endpoint: str = ""
    interface: str = ""
    wait_s: float = 0.0
    hello: Hello | None = None
    model_path: str = ""
    kernels_path: str = ""
