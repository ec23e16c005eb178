"""Entry of a rank on another machine than the first: `torchrun ... -m tokendyno.backend.executors.far_rank MODEL`, a
line that `tokendyno run --nnodes` prints. It finds the model where its own machine has it."""

import argparse
import hashlib
import os
from pathlib import Path

import msgspec

from tokendyno.backend import hardware, paths
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.several_machines import Endpoint, interface_to
from tokendyno.backend.executors.subprocess import environment
from tokendyno.backend.hardware.same_versions import SAME
from tokendyno.backend.models import ModelFacts, obstacle, pinned, resolve
from tokendyno.backend.units import plural
from tokendyno.backend.worker.ranks.launch import Hello, Share


def hello_of(facts: ModelFacts | None, problem: str = "") -> Hello:
    """What this machine is, and a digest of its model: source, matrices, names and sizes of its files."""
    versions = {name: version for name, version in hardware.versions().items() if name in SAME}
    device, model = hardware.detect().device, ""
    if facts is not None:
        source, files = pinned(facts), list[tuple[str, int]]()
        if source.path and (folder := Path(source.path)).is_dir():
            files = sorted((file.name, file.stat().st_size) for file in folder.iterdir() if file.is_file())
        identity = msgspec.structs.replace(source, path=""), facts.matrices, files
        model = hashlib.sha256(repr(identity).encode()).hexdigest()[:16]
    return Hello(versions, device, model, problem)


def share_of(model: str, models_dir: Path | None) -> Share:
    """What this machine takes on, as torchrun's variables say. What it lacks is told when the ranks meet."""
    ranks, host = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["GROUP_RANK"])
    machine, facts, problem = hardware.detect(), None, ""
    try:
        facts = resolve(model, models_dir)
        problem = obstacle(facts, hardware.hub_offline())
    except InputError as error:
        problem = str(error)
    if ranks > machine.devices:
        device = "GPU" if machine.gpus else "CPU core"
        problem = f"It has {plural(machine.devices, device)} for {ranks} ranks."
    return Share(
        ranks,
        int(os.environ["WORLD_SIZE"]) // ranks,
        host,
        model_path=facts.source.path if facts else "",
        kernels_path=machine.kernels,
        hello=hello_of(facts, problem),
    )


def main() -> None:
    """Meet the first machine, then serve until its run has ended."""
    parser = argparse.ArgumentParser(prog=__name__)
    parser.add_argument("model")
    parser.add_argument("--models-dir", type=Path)
    options = parser.parse_args()
    interface = interface_to(Endpoint(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        if interface:
            os.environ.setdefault(name, interface)
    os.environ.update(environment())
    from tokendyno.backend.worker.ranks.__main__ import take_part

    paths.private_folder("scratch")  # torch makes its folder there while it is imported, and says less
    take_part(os.getppid(), share_of(options.model, options.models_dir))


if __name__ == "__main__":
    main()
