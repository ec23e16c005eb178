"""What libraries keep once for a whole process, where that is somebody else's too: looked at before a load, given back
after it."""

import gc
from contextlib import ExitStack

import torch
from transformers.utils import logging

from tokendyno.backend.errors import InputError


def require_usual() -> None:
    """InputError where torch has settings under which an arm would not be what a worker measures."""
    dtype, precision = torch.get_default_dtype(), torch.get_float32_matmul_precision()
    changed = [
        *([f"torch.set_default_dtype({dtype})"] if dtype != torch.float32 else []),
        *([f"torch.set_float32_matmul_precision({precision!r})"] if precision != "highest" else []),
        *(["torch.use_deterministic_algorithms(True)"] if torch.are_deterministic_algorithms_enabled() else []),
    ]
    if changed:
        raise InputError(
            f"This process has {' and '.join(changed)}, so the arm would not compute what was measured. Undo "
            "that before td.load, or load the model in another process."
        )


def borrowed() -> ExitStack:
    """Take what a load changes, CPU threads and bars of progress; closing it gives that back."""
    undo = ExitStack()
    undo.callback(torch.set_num_threads, torch.get_num_threads())
    if logging.is_progress_bar_enabled():
        logging.disable_progress_bar()
        undo.callback(logging.enable_progress_bar)
    return undo


def free(compiled: bool) -> None:
    """Free a model that was let go of, what was compiled for it, and memory of the GPU that torch reserves."""
    gc.collect()
    if compiled:
        torch._dynamo.reset()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
