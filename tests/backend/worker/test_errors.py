"""What goes wrong in a worker, in words: a GPU that cannot be used is told with the way to the CPU."""

import errno

import pytest
import torch
from torch._inductor.exc import CppCompileError, InductorError, InvalidCxxCompiler

from tokendyno.backend.errors import InputError
from tokendyno.backend.worker import errors
from tokendyno.backend.worker.errors import explain
from tokendyno.backend.worker.load.download import DownloadFailed

TOO_OLD = (
    "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading "
    "and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx Alternatively, go to: "
    "https://pytorch.org to install a PyTorch version that has been compiled with your version of the CUDA driver."
)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError(TOO_OLD), "driver is older"),
        (
            RuntimeError("CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors"),
            "compute capability",
        ),
        (AssertionError("Torch not compiled with CUDA enabled"), "a CPU build"),
        (RuntimeError("Found no NVIDIA driver on your system."), "no driver"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_one_sentence_and_the_cpu_is_offered(error: Exception, said: str) -> None:
    sentence, advice, fatal = explain(error)
    assert sentence.startswith("The GPU cannot be used: ") and said in sentence and ". " not in sentence
    assert "TOKENDYNO_DEVICE=cpu" in advice and fatal


def test_what_this_torch_says_without_cuda_is_known() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises((AssertionError, RuntimeError)) as caught:
        torch.zeros(1, device="cuda")
    assert explain(caught.value)[0].startswith("The GPU cannot be used")


@pytest.mark.parametrize(
    ("error", "said", "fatal"),
    [
        (InputError("The prompt has no tokens."), "The prompt has no tokens.", False),
        (torch.cuda.OutOfMemoryError("CUDA out of memory"), "Out of memory", True),
        (OSError(errno.ENOMEM, "Cannot allocate memory", "model.safetensors"), "Out of memory", True),
        (RuntimeError("can't start new thread"), "Out of memory", True),
        (OSError(errno.ENOSPC, "No space left on device", "x.so"), "A disk is full", False),
        (DownloadFailed("OSError: [Errno 28] No space left on device"), "A disk is full", False),
        (DownloadFailed("ConnectTimeout"), "could not be downloaded", False),
        (RuntimeError("CUDA error: operation not permitted when stream is capturing"), "could not be captured", True),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), "The GPU reported an error", True),
        (ValueError("odd"), "ValueError: odd", False),
    ],
)
def test_other_faults_keep_their_own_words(error: Exception, said: str, fatal: bool) -> None:
    sentence, _, lost = explain(error)
    assert said in sentence and lost is fatal


def test_of_a_compile_error_the_compilers_own_words_are_told_and_not_its_command() -> None:
    output = "In file included from c.cpp:2:\nc.cpp:7:10: fatal error: Python.h: No such file or directory\n 7 |\n"
    error = InductorError(CppCompileError(["g++", "/tmp/c.cpp", "-shared"], output), None)
    sentence, advice, _ = explain(error)
    assert sentence.endswith("generated: Python.h: No such file or directory.") and "-shared" not in sentence
    assert "compile=off" in advice


def test_without_a_compiler_that_works_it_says_how_to_install_one() -> None:
    sentence, advice, _ = explain(InductorError(InvalidCxxCompiler(), None))
    assert sentence == "torch.compile finds no C++ compiler that works." and "apt-get install g++" in advice


def test_what_a_package_of_another_version_lacks_is_told_with_the_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks = ImportError("cannot import name 'get_kernel_mapping_transformers'")
    assert explain(lacks)[0].startswith("A package is missing")
    monkeypatch.setattr(errors, "startup_messages", lambda: ["transformers 5.24.0 is untested"])
    happened, advice, _ = explain(lacks)
    assert happened.startswith("An installed package lacks") and advice == "transformers 5.24.0 is untested"
