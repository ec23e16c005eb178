"""Where and when a run was measured, for one that is shown on another machine or on a later day."""

import time

from tokendyno.backend.runs.records import Created

SHOWN_VERSIONS = ("torch", "transformers")


def origin_sentence(created: Created) -> str:
    """Machine, date and versions of a run that came from a file; "" for one that ran here."""
    if created.origin == "here":
        return ""
    date = time.strftime("%Y-%m-%d", time.gmtime(created.created))
    versions = [f"{name} {created.versions[name]}" for name in SHOWN_VERSIONS if name in created.versions]
    parts = [f"Recorded on {device_name(created.machine)}", date, *versions]
    return f"{', '.join(parts)}."


def whole_note(created: Created) -> str:
    """What is to be known of the model and of where the run came from; "" where there is nothing."""
    parts = [part.rstrip(".") for part in (created.model_note, origin_sentence(created)) if part]
    return f"{'. '.join(parts)}." if origin_sentence(created) else created.model_note


def device_name(machine: dict[str, str]) -> str:
    """The GPU that was used, else the processor."""
    gpu = next((text for key, text in machine.items() if key[:3] == "gpu" and key[3:].isdecimal()), "")
    cores = f", {machine['cores']} cores" if "cores" in machine else ""
    return gpu.partition(",")[0] or f"{machine.get('cpu', 'an unknown machine')}{cores}"
