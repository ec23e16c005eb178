"""What went wrong in a worker, in words a user can act on."""

import torch

from backend.errors import InputError
from backend.worker.loader import DownloadFailed

_UNUSABLE = {
    "driver on your system is too old": "its driver is older than the CUDA that the installed torch was built for; "
    "update the driver, or install a torch for it",
    "no kernel image is available": "the installed torch has no kernels for this GPU's compute capability; install one "
    "that has",
    "Torch not compiled with CUDA enabled": "the installed torch is a build for CPUs; install one for CUDA",
    "Found no NVIDIA driver": "torch finds no driver; install it, or give it to this container",
    "CUDA unknown error": "the driver does not answer; restart the machine, or load its kernel module anew",
    "system has unsupported display driver / cuda driver combination": "driver and CUDA library do not go together; "
    "restart the machine after an update of the driver",
}
"""Words of torch 2.11 to 2.13 for a GPU that it cannot use at all (torch/csrc/cuda/Module.cpp, c10/cuda), and what
they mean. NVML was asked before a worker starts, so this is seen where NVML and torch disagree."""


def explain(error: Exception) -> tuple[str, str, bool]:
    """(what happened, what to do, whether the process is lost).

    After a CUDA error the device context is unusable, and after an out-of-memory the freed parts stay
    fragmented: in both cases a fresh process is the only clean state.
    """
    text = " ".join(str(error).split())
    first = text[:400] or type(error).__name__
    if isinstance(error, InputError):
        return first, "", False
    if isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) or "can't allocate memory" in text:
        return f"Out of memory: {first}", "Take a smaller model, batch or length, or a 2-byte dtype.", True
    unusable = next((why for sign, why in _UNUSABLE.items() if sign in text), "")
    if unusable:
        return f"The GPU cannot be used: {unusable}.", "Or start tokendyno with TOKENDYNO_DEVICE=cpu.", True
    if "CUDA" in text and isinstance(error, RuntimeError):
        advice = "The worker starts afresh; run again, or switch the last change off."
        return f"The GPU reported an error: {first}", advice, True
    if isinstance(error, DownloadFailed):
        advice = "Check the connection, name a local folder, or take random:NAME, which needs no download."
        return f"The model could not be downloaded ({first}).", advice, False
    if isinstance(error, FileNotFoundError | OSError):
        return f"The model's files cannot be read: {first}", "Check the folder, or pick another model.", False
    if isinstance(error, ImportError):
        return f"A package is missing: {first}", "Install it, or switch this optimization off.", False
    name = type(error).__name__
    if "torch._dynamo" in type(error).__module__ or "torch._inductor" in type(error).__module__:
        return f"torch.compile failed ({name}): {first}", "Set compile=off for this arm.", False
    return f"{name}: {first}", "Run again; if it stays, switch this arm's choices back one by one.", False
