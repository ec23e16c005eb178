"""What a pinned arm ran under: whatever may set two arms apart besides their choices."""

from tokendyno.backend.redact import plain
from tokendyno.backend.runs.row import machine_text
from tokendyno.backend.runs.snapshot import Snapshot

MAX_TEXT = 240
"""Characters of a prompt, and of an arm's text."""

UNKNOWN = "not recorded"

ALIKE = ("Model", "Timed", "Prompt tokens", "New tokens", "Passes", "Batch size", "Requests")
"""Where one of these differs, figures are not set against each other."""


def conditions(run: Snapshot, name: str) -> dict[str, str]:
    """By label, in the order in which they are shown."""
    created = run.created
    found = {
        "Model": plain(created.model_label),
        "Machine": plain(machine_text(created.machine)) or UNKNOWN,
        "Driver": plain(created.machine.get("driver", "none")),
    }
    for package in ("tokendyno", "torch", "transformers"):
        found[package] = plain(created.versions.get(package, "none" if created.versions else UNKNOWN))
    traffic = run.request.traffic
    if traffic is not None:
        return found | {"Requests": plain(traffic.label) or f"{len(traffic.requests):,} requests"}
    return found | _workload(run, name)


def _workload(run: Snapshot, name: str) -> dict[str, str]:
    work, arm, tokens = run.request.workload, run.arms[name], run.unit == "token"
    found = {
        "Prompt": _prompt(run),
        "Prompt tokens": f"{arm.started.prompt_tokens:,}" if arm.started else "n/a",
        "New tokens" if tokens else "Passes": f"{len(arm.t_s):,}",
        "Batch size": f"{work.batch_size:,}",
        "Timed": "tokens" if tokens else "forward passes",
    }
    if tokens:
        how = [f"temperature {work.temperature:g}, seed {work.seed}" if work.temperature else "greedy"]
        how += [f"top-k {work.top_k}"] if work.top_k else []
        how += [f"top-p {work.top_p:g}"] if work.top_p < 1 else []
        found["Sampling"] = ", ".join(how)
    return found


def _prompt(run: Snapshot) -> str:
    work = run.request.workload
    if run.request.quality is not None:
        return beginning(", ".join(text.name for text in run.request.quality.texts))
    how = [f"cut or repeated to {work.prompt_tokens:,} tokens"] if work.prompt_tokens else []
    how += ["chat"] if work.chat else []
    how += [f"reasoning {work.reasoning_effort}"] if work.reasoning_effort else []
    how += [f"system: {work.system}"] if work.system else []
    text = beginning(work.prompt) or "synthetic"
    return beginning(f"{text} ({'; '.join(how)})" if how else text)


def beginning(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(plain(text).split())
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}..."
