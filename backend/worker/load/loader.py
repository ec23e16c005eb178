"""Loads a model and its tokenizer as a `LoadPlan` says, and reports each phase."""

import contextlib
import ctypes
import functools
import mmap
import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from transformers import AutoConfig, AutoTokenizer, GenerationConfig
from transformers.integrations import hub_kernels

from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.hosting.limits import ALLOWED_KERNELS
from tokendyno.backend.messages import Amount, PhaseName
from tokendyno.backend.models.available import check_cached
from tokendyno.backend.models.families import is_encoder
from tokendyno.backend.models.files.hub import lacking
from tokendyno.backend.plan import ONE_THREAD_BELOW_BYTES, LoadPlan
from tokendyno.backend.worker.channel import Channel, Steps, repeating
from tokendyno.backend.worker.load import parallel, quantization
from tokendyno.backend.worker.load.check import TOKENIZER, blaming_config, blaming_weights, named, reading
from tokendyno.backend.worker.load.device import (
    Observed,
    close_gaps,
    cuda_devices,
    device_keywords,
    make_context,
    moved,
    observing,
)
from tokendyno.backend.worker.load.download import download
from tokendyno.backend.worker.load.random_weights import auto_class, byte_tokenizer, load_as_checkpoint, random_model
from tokendyno.backend.worker.measure.memory import MemoryMeter
from tokendyno.backend.worker.patch import attention
from tokendyno.backend.worker.patch.experts import TRITON, set_experts, use_triton
from tokendyno.backend.worker.patch.projections import fuse
from tokendyno.backend.worker.prove.tensor_bytes import total_bytes, weight_tensors

_THREADS = torch.get_num_threads()


def choose_threads(weight_bytes: int) -> str:
    """Set torch's CPU threads; returns a remark, "" where torch's own count stays. A tiny model's operators finish
    before a second thread wakes up: a token of 10 MB took 15.5 ms with two, 6 ms with one (lab/measurements.md)."""
    single = weight_bytes < ONE_THREAD_BELOW_BYTES and _THREADS > 1 and not os.environ.get("OMP_NUM_THREADS")
    torch.set_num_threads(1 if single else _THREADS)
    return f"1 CPU thread: a model of {weight_bytes:,} bytes is too small to gain from more" if single else ""


def of_pooler(missing: Collection[str]) -> set[str]:
    """The tensors of an encoder's pooler, on which no token's states depend."""
    return {name for name in missing if "pooler" in name.split(".")}


def drawn_anew(missing: Collection[str]) -> str:
    """A remark on tensors of the model that its checkpoint lacks, which transformers draws at random; "" for none."""
    needed = set(missing) - of_pooler(missing)
    if needed:
        return (
            f"{len(needed):,} of the model's tensors are not in the checkpoint, first {min(needed)}, and were drawn at "
            "random: outputs are not the checkpoint's. Copy the weights again, or correct config.json"
        )
    pooler = (
        "the checkpoint has no pooler: one of random numbers is computed and timed, and no token's states depend on it"
    )
    return pooler if missing else ""


class LoadedModel:
    """A loaded model with its tokenizer.

    encoder   it generates no tokens, or is not to
    eos, pad  ids that end a text, possibly none; the id of padding
    remark    for the user: what was decided for its size or while it was loaded
    """

    def __init__(self, plan: LoadPlan, model: Any, tokenizer: Any, observed: Observed) -> None:
        self.plan, self.model, self.tokenizer = plan, model.eval(), tokenizer
        self.observed, self.counts = observed, observed.counts
        if plan.projections == "fused":
            fuse(model)
            if plan.device == "cuda" and plan.parallel.kind == "off":
                close_gaps(model, observed)
        apply_patches(model, plan)
        self.encoder = is_encoder(model.config.model_type) or plan.source.forward
        settings = model.generation_config if not self.encoder else GenerationConfig()
        self.eos, self.pad = eos_and_pad(settings, tokenizer)
        # A checkpoint's own sampling defaults would change what is measured: only the run's settings count.
        model.generation_config = GenerationConfig(pad_token_id=self.pad)
        threads = choose_threads(self.weight_bytes) if plan.device == "cpu" else ""
        self.remark = "; ".join(note for note in (observed.note, threads) if note)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all parameters and buffers, scales included, shared storage counted once, from the tensors."""
        return total_bytes(weight_tensors(self.model))


def apply_patches(model: Any, plan: LoadPlan) -> None:
    """Apply the plan's attention, experts and kernels. Raises InputError, and what transformers and `kernels` raise."""
    if not plan.sinks:
        attention.drop_sinks(model)
    if plan.experts == TRITON:
        use_triton(model, str(kernel_packages.ROUTED))
    elif plan.experts is not None:
        set_experts(model, plan.experts)
    if plan.kernels != "off" or "kernels" in sys.modules:  # to undo those of an earlier model
        from tokendyno.backend.worker.patch import kernels

        kernels.apply(model, plan)


def eos_and_pad(settings: Any, tokenizer: Any) -> tuple[list[int], int]:
    """The ids that end a text, and the id of padding: from a checkpoint's generation config, else its tokenizer."""
    eos = settings.eos_token_id if settings.eos_token_id is not None else tokenizer.eos_token_id
    ids = [] if eos is None else [eos] if isinstance(eos, int) else list(eos)
    pad = settings.pad_token_id if settings.pad_token_id is not None else tokenizer.pad_token_id
    return ids, pad if pad is not None else (ids[0] if ids else 0)


def load(plan: LoadPlan, channel: Channel, expected_bytes: int = 0) -> LoadedModel:
    """Load as planned. Raises InputError, DownloadFailed, and whatever transformers raises."""
    source = plan.source
    path, downloaded = Path(source.path), False
    guard_kernels()
    if source.kind == "hub":
        downloaded = bool(lacking(source.repo, source.at))
        path = download(source.repo, source.at, channel)
    if plan.attention == "sdpa-gqa":
        attention.register_grouped_attention()
    if plan.any_kernel:
        attention.load_kernel(plan.attention or "")
    observed = Observed()
    make_context(plan, observed)
    as_stored = plan.quantization == "none" or plan.quantization.startswith("mxfp4")  # which is packed in the files
    phase: PhaseName = "load" if as_stored else "quantize"
    with channel.phasing(phase, source.kind) as steps, load_progress(plan, steps, expected_bytes, observed):
        if source.kind == "random":
            if plan.quantization != "none" or plan.parallel.kind != "off":
                model = load_as_checkpoint(plan, observed)
            else:
                with observed.stage("fill"):
                    model = random_model(source.config_json, plan.dtype, plan.attention, plan.device)
            tokenizer: Any = byte_tokenizer(model.config.get_text_config().vocab_size)
        else:
            with _gguf_read_once() if plan.source.kind == "gguf" else contextlib.nullcontext():
                model, tokenizer = _load_files(plan, path, downloaded, observed)
        return LoadedModel(plan, model, tokenizer, observed)


def _load_files(plan: LoadPlan, path: Path, downloaded: bool, observed: Observed) -> tuple[Any, Any]:
    """The model and the tokenizer of a folder or a GGUF file. downloaded: by this load, so not checked before."""
    gguf = plan.source.kind == "gguf"
    folder = path.parent if gguf else path
    safe: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
    safe |= {"gguf_file": path.name} if gguf else {}
    kwargs: dict[str, Any] = device_keywords(plan) | ({} if gguf else {"use_safetensors": True})
    if plan.attention is not None:
        kwargs |= {"attn_implementation": plan.attention, "allow_all_kernels": plan.any_kernel}
    observed.cached_share = cached_share([path] if gguf else path.glob("*.safetensors"))
    with reading(named("config", path, ("config.json",))):
        config = AutoConfig.from_pretrained(folder, **safe)
    if downloaded:
        check_cached(path, plan.source.repo)
    with observed.stage("tokenizer"), reading(named("tokenizer", path, TOKENIZER)):
        tokenizer = AutoTokenizer.from_pretrained(folder, **safe)
        tokenizer.name_or_path = str(path)
    if not is_encoder(config.model_type):
        with reading("generation_config.json"), contextlib.suppress(OSError):  # none, or no JSON
            GenerationConfig.from_pretrained(folder, local_files_only=True)
    if chosen := forget_own_choices(config):
        kwargs["config"], observed.note = config, chosen
    kwargs |= quantization.keywords(plan, config.dtype if plan.dtype == "auto" else getattr(torch, plan.dtype))
    kwargs |= parallel.keywords(plan, config.model_type)
    model_class = auto_class(config.model_type)
    blaming = blaming_config(lambda: model_class.from_config(config))
    with observing(plan, observed), quantization.observing(plan, observed), blaming, blaming_weights(folder):
        model, report = model_class.from_pretrained(
            folder, dtype=plan.dtype, output_loading_info=True, **safe, **kwargs
        )
        missing = report["missing_keys"]
        quantization.quantize_drawn(model, missing)
    observed.note = "; ".join(filter(None, [drawn_anew(missing), observed.note]))
    observed.counts["drawn_tensors"] = float(len(missing) - len(of_pooler(missing)))
    quantization.finish(model, plan)
    parallel.finish(model, plan)
    return moved(model, plan, observed), tokenizer


@contextlib.contextmanager
def _gguf_read_once() -> Iterator[None]:
    """Cache what transformers 5.22 reads from a GGUF file during a load: it parses the file three times (2 s each for
    49,152 words) and builds the same table of tensor names for each module. SmolLM2 takes 10 s instead of 16."""
    import gguf

    reader, names = functools.cache(gguf.GGUFReader), functools.cache(gguf.get_tensor_name_map)
    with mock.patch.multiple(gguf, GGUFReader=reader, get_tensor_name_map=names):
        yield


# --- the page cache: files in it are read at the speed of memory, others at that of the disk ----


def cached_share(files: Iterable[Path]) -> float | None:
    """Share of the files' pages that are in the page cache, 0 to 1; None where the system does not tell."""
    if sys.platform != "linux":
        return None
    pages = resident = 0
    try:
        for path in files:
            stat = path.stat()
            if not stat.st_size:
                continue
            if stat.st_uid != os.geteuid() and not os.access(path, os.W_OK, effective_ids=True):
                return None
            mapped = np.memmap(path, np.uint8, "r")  # takes no memory, however large the file is
            flags = np.empty(-(-mapped.size // mmap.PAGESIZE), np.uint8)  # bit 0 of each page: it is resident
            begin, size = ctypes.c_void_p(mapped.ctypes.data), ctypes.c_size_t(mapped.size)
            if ctypes.CDLL(None).mincore(begin, size, ctypes.c_void_p(flags.ctypes.data)):
                return None
            pages, resident = pages + flags.size, resident + int(np.count_nonzero(flags & 1))
    except OSError:
        return None
    return resident / pages if pages else None


# --- choices of a checkpoint ---------------------------------------------------------------------

# transformers 5.22 takes `attn_implementation` and `experts_implementation` from config.json, and downloads compiled
# kernels where such a name is a repository. Here only the arm chooses.

_FIELDS = {"_attn_implementation": "attention", "_experts_implementation": "experts"}


def forget_own_choices(config: Any) -> str:
    """Clear what a config and its nested configs choose themselves; returns a remark, "" if they choose nothing."""
    cleared: dict[str, None] = {}
    for part in _nested(config):
        for field, axis in _FIELDS.items():
            chosen = getattr(part, field, None)
            if chosen is not None:
                cleared[f"{axis}={chosen}"[:80]] = None
                setattr(part, field, None)
    return f"the checkpoint's config asked for {', '.join(cleared)}, which the arm decides" if cleared else ""


def _nested(config: Any) -> Iterator[Any]:
    yield config
    for name in getattr(config, "sub_configs", {}):
        inner = getattr(config, name, None)
        if inner is not None:
            yield from _nested(inner)


def guard_kernels(env: Mapping[str, str] = os.environ) -> None:
    """From now on transformers loads only the listed kernels of the Hub, if there is a list."""
    get_any = hub_kernels.get_kernel_hub
    if ALLOWED_KERNELS not in env or hasattr(get_any, "guarded"):
        return
    allowed = {name.strip() for name in env[ALLOWED_KERNELS].split(",")}

    def get_listed(name: str, *args: Any, **kwargs: Any) -> Any:
        if name not in allowed:
            raise InputError(
                f"This model needs kernels from the Hub ({name}), which are binaries and are not downloaded here. "
                "Choose another model."
            )
        return get_any(name, *args, **kwargs)

    get_listed.guarded = True  # type: ignore[attr-defined]
    hub_kernels.get_kernel_hub = get_listed


# --- progress ------------------------------------------------------------------------------------

HOST_SAMPLE_S = 0.02
"""Host memory is sampled: a peak shorter than this may be missed."""
_REPORT_S = 0.5


@contextlib.contextmanager
def load_progress(plan: LoadPlan, steps: Steps, expected_bytes: int, observed: Observed) -> Iterator[None]:
    """Around a load: reports as its progress the memory that has arrived of `expected_bytes`, every half second while
    it grows, and records the peaks of host and device memory in `observed`."""
    cuda, devices = plan.device == "cuda", cuda_devices(plan)
    peaks, host_bytes = observed.peak_bytes, MemoryMeter("cpu").read
    last = 0.0

    def arrived_bytes() -> int:
        return sum(int(torch.cuda.memory_allocated(index)) for index in devices) if cuda else host_bytes()

    def sample() -> None:
        peaks["host"] = max(peaks["host"], host_bytes())

    def report() -> None:
        nonlocal last
        loaded_bytes = max(0, arrived_bytes() - base_bytes)
        fraction = min(0.99, loaded_bytes / expected_bytes) if expected_bytes else None
        if (fraction or loaded_bytes) > last:
            last = fraction or loaded_bytes
            steps.step(fraction, amount=Amount(loaded_bytes, expected_bytes or None))

    for index in devices if cuda else ():
        torch.cuda.reset_peak_memory_stats(index)
    base_bytes, peaks["host"] = arrived_bytes(), host_bytes()
    try:
        with repeating(sample, HOST_SAMPLE_S, "load-memory"), repeating(report, _REPORT_S, "load-progress"):
            yield
    finally:
        sample()
        if cuda:
            peaks["device"] = sum(int(torch.cuda.max_memory_reserved(index)) for index in devices)
