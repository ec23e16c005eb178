"""What each mode allows: the one table of limits. `tokendyno doctor` prints it, docs/hosting.md repeats it.

local   the user's own machine: whoever reaches the loopback interface is the local user
team    a network where everybody logs in
public  strangers, each known by a random cookie
show    the same, but nothing runs: recordings are all that there is to see
"""

from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from tokendyno.backend.errors import unknown
from tokendyno.backend.units import bytes_text

Mode = Literal["local", "team", "public", "show"]

ALLOWED_KERNELS = "TOKENDYNO_ALLOW_KERNELS"
"""Set for workers where visitors may download no kernels but those that it lists."""

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

RECORDING_BYTES = 6 * MIB
"""About 100,000 tokens. A file within it takes less than 200 MB of memory while it is read: short texts in a list take
twenty times their bytes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a visitor may do in one mode. Sizes in bytes, durations in seconds; None: no limit beyond the program's own.

    login          whether a visitor must log in or send a token; otherwise a random cookie tells visitors apart
    local_paths    folders and files of this machine as models
    owner_token    the Hugging Face token and login of whoever started the app
    kernel_folder  a folder of kernels named with --kernels-dir, TOKENDYNO_KERNELS or LOCAL_KERNELS
    hub_kernels    kernels downloaded from the Hub, which are binaries; `kernels` lists exceptions
    models         the only models there are; empty: any within `model_bytes`
    model_bytes    weights of a model, and files to be downloaded
    worker_bytes   host memory that the processes of an arm hold, and at most three quarters of the machine's
    run_tokens     prompt and new tokens of a run: of all arms, repeats and sequences together
    run_s          from the beginning of a run to its end; what was measured until then is kept
    trials         runs of an ablation: arms by rounds, and readings of texts
    address_runs   likewise of a network address, which a new cookie does not reset
    unread_bytes   of answers that wait to be read, of everybody; `address_unread_bytes` of one address
    address_events    what was asked for through Gradio's queue from one address and not fetched yet
    address_requests  of one address, answered at a time; further ones wait
    logins         failed logins of an address, and of a user name, in `logins_per_s`
    history_days   age from which runs and ablations are deleted
    history_bytes  of all runs together; past it the oldest are deleted. `ablation_bytes`: likewise of ablations
    recording_bytes  of a file of one run, unpacked
    """

    mode: Mode
    runs: bool = True
    login: bool = False
    local_paths: bool = True
    owner_token: bool = True
    imports: bool = True
    kernel_folder: bool = True
    hub_kernels: bool = True
    kernels: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    model_bytes: int | None = None
    worker_bytes: int | None = None
    prompt_bytes: int = MIB
    prompt_tokens: int | None = None
    new_tokens: int | None = None
    batch_size: int | None = None
    repeats: int | None = None
    run_tokens: int | None = None
    run_s: float | None = None
    trials: int | None = None
    open_runs: int | None = None
    address_runs: int | None = None
    queued_runs: int = 16
    body_bytes: int = 8 * MIB
    sessions: int = 64
    connections: int = 512
    address_connections: int | None = None
    unread_bytes: int = 256 * MIB
    address_unread_bytes: int | None = None
    address_events: int | None = None
    address_requests: int | None = None
    logins: int = 5
    logins_per_s: float = 60.0
    history_days: int = 365
    history_bytes: int = 2 * GIB
    ablation_bytes: int = 64 * MIB
    recording_bytes: int = RECORDING_BYTES


LIMITS: dict[Mode, Limits] = {
    "local": Limits("local"),
    "team": Limits(
        "team", login=True, run_s=3_600, open_runs=4, queued_runs=32, sessions=256,
        address_connections=256, address_unread_bytes=64 * MIB, address_events=64, address_requests=16,
    ),
    "public": Limits(
        "public", local_paths=False, owner_token=False, imports=False, kernel_folder=False, hub_kernels=False,
        model_bytes=4 * GIB, worker_bytes=16 * GIB,
        prompt_bytes=16 * KIB, prompt_tokens=4_096, new_tokens=1_024, batch_size=8, repeats=5,
        run_tokens=65_536, run_s=300, trials=60, open_runs=2, address_runs=8, queued_runs=32, body_bytes=256 * KIB,
        sessions=256, address_connections=256, address_unread_bytes=64 * MIB, address_events=64, address_requests=16,
    ),
}  # fmt: skip
LIMITS["show"] = replace(LIMITS["public"], mode="show", runs=False)

NO_RUNS = (
    "This host only shows recordings and runs nothing. To run it yourself, install tokendyno on a machine of your own "
    "and start it with: tokendyno open."
)


def limits_of(mode: str, models: tuple[str, ...] = (), kernels: tuple[str, ...] = ()) -> Limits:
    """The limits of a mode by its name, with what whoever starts the app lists. InputError for an unknown mode."""
    for known in get_args(Mode):
        if known == mode:
            return replace(LIMITS[known], models=models, kernels=kernels)
    raise unknown("mode", mode, get_args(Mode))


def rows() -> list[tuple[str, tuple[str, ...]]]:
    """The table as text: the name of each limit, and what it is in each mode."""
    names = [field.name for field in fields(Limits) if field.name not in ("mode", "kernels", "models")]
    return [(name, tuple(_text(name, getattr(limits, name)) for limits in LIMITS.values())) for name in names]


def _text(name: str, value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int() if name.endswith("_bytes"):
            return " ".join(bytes_text(value))
        case int() | float() if name.endswith("_s"):
            return f"{value:,g} s"
        case int():
            return f"{value:,}"
        case _:
            return "no limit"
