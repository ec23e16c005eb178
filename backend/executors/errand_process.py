"""Entry of an errand's process, with PARENT_PID: the errand on standard input, answers on standard output."""

import os
import platform
import sys
from pathlib import Path

from tokendyno.backend import hardware
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.executors.errand import Answer, Done, Errand, Impossible, decode_errand, encode
from tokendyno.backend.hardware.same_versions import version_gap
from tokendyno.backend.worker.lifetime import die_with_parent, guard_group, keep_events_apart


def main() -> None:
    """Tie this process to its parent, then one run after the other."""
    die_with_parent(int(sys.argv[1]))
    guard_group()
    answers = os.fdopen(keep_events_apart(), "wb", buffering=0)

    def tell(answer: Answer) -> None:
        answers.write(encode(answer) + b"\n")

    errand = decode_errand(sys.stdin.buffer.readline())
    if reason := unfit(errand):
        tell(Impossible(f"{platform.node()} cannot run trials: {reason}"))
        return
    bench = open_bench(None, Path(errand.models_dir) if errand.models_dir else None)
    bench.start()
    try:
        for request in errand.requests:
            run_id = bench.submit(request)
            bench.wait(run_id)
            tell(Done(bench.store.read(run_id), platform.node()))
    except InputError as error:
        tell(Impossible(f"{platform.node()} cannot run this trial: {error}"))
    finally:
        bench.close()


def unfit(errand: Errand) -> str:
    """Why this machine is none that the errand asks for, in a sentence; "" if it is."""
    device = hardware.detect().device
    if device != errand.device:
        return f"Its device is {device}, and trials are compared on {errand.device}."
    return version_gap(errand.versions, hardware.versions())


if __name__ == "__main__":
    main()
