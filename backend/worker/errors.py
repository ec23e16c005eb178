"""Turns an exception in the worker into a sentence and advice for the user."""

import torch

from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware.compatibility import startup_messages
from tokendyno.backend.hardware.compilers import INSTALL
from tokendyno.backend.worker.load.download import DownloadFailed
from tokendyno.backend.worker.measure.finite import UNDO, NotFinite

_UNUSABLE = {
    "driver on your system is too old": "the driver is older than the CUDA version that the installed torch was built "
    "for; update the driver, or install a torch build for it",
    "no kernel image is available": "the installed torch has no kernels for this GPU's compute capability; install a "
    "build that has them",
    "Torch not compiled with CUDA enabled": "the installed torch is a CPU build; install a CUDA build",
    "Found no NVIDIA driver": "torch finds no driver; install one, or make it available in this container",
    "CUDA unknown error": "the driver does not answer; restart the machine, or reload its kernel module",
    "system has unsupported display driver / cuda driver combination": "driver and CUDA library do not match; "
    "restart the machine after a driver update",
}
"""Messages of torch 2.11 to 2.13 for a GPU that it cannot use at all (torch/csrc/cuda/Module.cpp, c10/cuda), and what
they mean. NVML is asked before a worker starts, so these appear where NVML and torch disagree."""

_NO_MEMORY = ("can't allocate memory", "Cannot allocate memory", "std::bad_alloc", "can't start new thread")
"""Of torch's CPU allocator, of the system (ENOMEM, by reading a file too), of C++, and of threads."""

_NO_ROOM = ("No space left on device", "Disk quota exceeded")


def explain(error: Exception) -> tuple[str, str, bool]:
    """(what happened, what to do, whether the process must not be used again).

    After a CUDA error the device context is unusable, and after running out of memory the freed parts stay fragmented:
    in both cases only a new process has a clean state.
    """
    text = " ".join(str(error).split())
    message = text[:400] or type(error).__name__
    if isinstance(error, InputError):
        return message, "", False
    if isinstance(error, NotFinite):
        return message, error.advice, False
    if "probability tensor contains either" in text:  # torch.multinomial, where drafts are sampled on a CPU
        return "Tokens were to be drawn from scores that are infinite or not a number (NaN).", UNDO, False
    if isinstance(error, torch.cuda.OutOfMemoryError | MemoryError) or any(sign in text for sign in _NO_MEMORY):
        return f"Out of memory: {message}", "Use a smaller model, batch or length, or a 2-byte dtype.", True
    cause = next((why for sign, why in _UNUSABLE.items() if sign in text), "")
    if cause:
        return f"The GPU cannot be used: {cause}.", "Or start tokendyno with TOKENDYNO_DEVICE=cpu.", True
    if "captur" in text and isinstance(error, RuntimeError):
        advice = "Set cuda_graphs=off: something in it waits for the GPU, or allocates memory of its own."
        return f"A CUDA graph could not be captured: {message}", advice, True
    if "CUDA" in text and isinstance(error, RuntimeError):
        advice = "Run again with a new worker, or undo the last change."
        return f"The GPU reported an error: {message}", advice, True
    if any(sign in text for sign in _NO_ROOM):
        advice = "Free some space, or set HF_HOME and TOKENDYNO_CACHE to another disk."
        return f"A disk is full: {message}", advice, False
    if isinstance(error, DownloadFailed):
        advice = "Check the connection, or use a local folder or random:NAME, which needs no download."
        return f"The model could not be downloaded ({message}).", advice, False
    if isinstance(error, OSError):
        return f"The model's files cannot be read: {message}", "Check the folder, or choose another model.", False
    if isinstance(error, ImportError) and (versions := " ".join(startup_messages())):
        return f"An installed package lacks something: {message}", versions, False
    if isinstance(error, ImportError):
        return f"A package is missing: {message}", "Install it, or switch this optimization off.", False
    if "InvalidCxxCompiler" in text:
        return "torch.compile finds no C++ compiler that works.", f"Install one {INSTALL}, or set compile=off.", False
    if "C++ compile error" in text:
        sentence = f"The C++ compiler refuses the code that torch.compile generated: {_compile_error(error)}."
        advice = "Install another compiler and name it by the variable CXX, or set compile=off for this arm."
        return sentence, advice, False
    name = type(error).__name__
    if "torch._dynamo" in type(error).__module__ or "torch._inductor" in type(error).__module__:
        return f"torch.compile failed ({name}): {message}", "Set compile=off for this arm.", False
    return f"{name}: {message}", "Run again; if it fails again, undo this arm's choices one by one.", False


def _compile_error(error: Exception) -> str:
    """The first error that the compiler reported: below "Output:" of torch's message."""
    lines = [line.strip() for line in str(error).rpartition("Output:\n")[2].splitlines() if line.strip()]
    first = next((line for line in lines if "error:" in line), lines[0] if lines else "it gave no reason")
    return first.rpartition("error: ")[2][:300]
