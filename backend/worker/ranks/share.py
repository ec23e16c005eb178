"""What one machine's launcher is told: which ranks it starts, of how many machines, and where those meet."""

import msgspec


class Share(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The ranks of one machine.

    ranks         on this machine; every machine has as many
    hosts, host   machines that share the model, and which of them this is; rank 0 is on machine 0
    endpoint      HOST:PORT of the rendezvous, on machine 0; "" where one machine has all ranks
    interface     network interface through which the others are reached, "" where torch is to find it
    model_path    the model's folder or file on this machine, where machine 0 has it elsewhere
    kernels_path  likewise the folder of kernels
    """

    ranks: int
    hosts: int = 1
    host: int = 0
    endpoint: str = ""
    interface: str = ""
    model_path: str = ""
    kernels_path: str = ""
