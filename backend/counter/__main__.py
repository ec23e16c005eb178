"""Reads a config as JSON from standard input and writes an `Answer` as JSON to standard output.

The config is a stranger's: no code of its own is ever run (`trust_remote_code` stays off, and a config class that
transformers does not have is refused), nothing is downloaded, and time and memory are limited.
"""

import os
import resource
import sys
from pathlib import Path
from typing import Any

import msgspec

from tokendyno.backend.models.counting import CPU_SECONDS, Answer
from tokendyno.backend.models.files.config_fields import decode_config

UNUSED = ("hqq", "optimum", "torchao", "bitsandbytes", "kernels")
"""Packages that nothing here needs; transformers imports them if they are installed, for 4 of 7 s."""

ROOM_BYTES = 4 << 30
"""Address space beyond what torch and transformers have mapped when imported. deepseek_v3 takes 0.3 GiB of it."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    modules: dict[str, Any] = sys.modules
    modules.update(dict.fromkeys(UNUSED))
    answers = os.dup(1)
    os.dup2(2, 1)  # libraries print
    config = decode_config(sys.stdin.buffer.read().decode())

    import transformers

    from tokendyno.backend.counter.model import Refused, count

    transformers.logging.set_verbosity_error()
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ROOM_BYTES, mapped + ROOM_BYTES))
    try:
        answer = Answer(counted=count(config))
    except Refused as reason:
        answer = Answer(refused=str(reason))
    except MemoryError:
        answer = Answer(refused="transformers needs more memory to build it than is granted")
    except RecursionError:
        answer = Answer(refused="its config is nested too deeply")
    with os.fdopen(answers, "wb") as out:
        out.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
