"""Brings a model and its tokenizer into memory, as a plan's `LoadPlan` says, and reports each phase."""

import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from backend.errors import InputError
from backend.messages import PhaseName
from backend.models.families import is_encoder
from backend.optimizations.tensors import held_bytes, weight_tensors
from backend.plan import ONE_THREAD_BELOW_BYTES, LoadPlan
from backend.worker import attention, noise, quantize
from backend.worker.drawn import load_packed
from backend.worker.fusion import fuse
from backend.worker.kinds import auto_class
from backend.worker.loading import Observed, device_keywords, make_context, moved, observing
from backend.worker.outbox import Outbox, Steps
from backend.worker.stand_ins import put_in
from backend.worker.telemetry import MemoryMeter

_WANTED_FILES = ["*.json", "*.safetensors", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt"]

HOST_EVERY_S = 0.02  # host memory is sampled: what was in use for a shorter time may be missed
_THREADS = torch.get_num_threads()


def choose_threads(weight_bytes: int) -> str:
    """Set torch's CPU threads for a model of this size; returns a remark, "" where torch's own count stays.

    The operators of a tiny model are over before a second thread is awake: with 10 MB of weights two waiting
    threads took 15.5 ms a token and one took 6 (MEASUREMENTS.md). OMP_NUM_THREADS, if set, is left alone.
    """
    one = weight_bytes < ONE_THREAD_BELOW_BYTES and _THREADS > 1 and not os.environ.get("OMP_NUM_THREADS")
    torch.set_num_threads(1 if one else _THREADS)
    return f"one CPU thread: {weight_bytes:,} bytes of weights are too few to share between cores" if one else ""


class Bench:
    """A loaded model with its tokenizer. `encoder`: it makes no tokens; `eos` holds the ids that end a text, possibly
    none; `remark` says what was decided for its size or of its load; `observed` and `counts` what was seen while it was
    loaded."""

    def __init__(self, plan: LoadPlan, model: Any, tokenizer: Any, observed: Observed | None = None) -> None:
        self.plan, self.model, self.tokenizer = plan, model.eval(), tokenizer
        self.observed = observed or Observed()
        self.counts = self.observed.counts
        if plan.projections == "fused":
            fuse(model)
        put_in(model, plan)
        self.encoder = is_encoder(model.config.model_type)
        own = model.generation_config if not self.encoder else GenerationConfig()
        ends = own.eos_token_id if own.eos_token_id is not None else tokenizer.eos_token_id
        self.eos: list[int] = [] if ends is None else [ends] if isinstance(ends, int) else list(ends)
        pad = own.pad_token_id if own.pad_token_id is not None else tokenizer.pad_token_id
        self.pad: int = pad if pad is not None else (self.eos[0] if self.eos else 0)
        # A checkpoint's own sampling defaults would change what is measured: only what a run states counts.
        model.generation_config = GenerationConfig(pad_token_id=self.pad)
        threads = choose_threads(self.weight_bytes) if plan.device == "cpu" else ""
        self.remark = "; ".join(said for said in (self.observed.note, threads) if said)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all parameters and buffers, scales included, each place once, counted from the tensors."""
        return held_bytes(weight_tensors(self.model))


def load(plan: LoadPlan, outbox: Outbox, expected_bytes: int = 0) -> Bench:
    """Load as planned. Raises whatever transformers raises; the caller words it."""
    source = plan.source
    path = Path(source.path)
    if source.kind == "hub":
        path = _download(source.repo, source.revision, outbox)
    if plan.attention == "sdpa-gqa":
        attention.register()
    observed = Observed()
    make_context(plan, observed)
    phase: PhaseName = "quantize" if quantize.packs(plan) else "load"
    with outbox.phasing(phase, source.kind) as steps, _Watching(plan.device, steps, expected_bytes, observed):
        if source.kind == "random" and plan.quantization != "none":
            model = load_packed(plan, observed)
            return Bench(plan, model, noise.byte_tokenizer(model.config.get_text_config().vocab_size), observed)
        if source.kind == "random":
            with observed.stage("fill"):
                model = noise.random_model(source.config_json, plan.dtype, plan.attention, plan.device)
            return Bench(plan, model, noise.byte_tokenizer(model.config.get_text_config().vocab_size), observed)
        safe: dict[str, Any] = {"trust_remote_code": False, "local_files_only": True}
        more: dict[str, Any] = {"use_safetensors": True}
        if source.kind == "gguf":
            path, safe["gguf_file"], more = path.parent, path.name, {}
        if plan.attention is not None:
            more["attn_implementation"] = plan.attention
        more |= device_keywords(plan)
        with _reading_once() if source.kind == "gguf" else contextlib.nullcontext():
            with observed.stage("tokenizer"):
                tokenizer = AutoTokenizer.from_pretrained(path, **safe)
            config = AutoConfig.from_pretrained(path, **safe)
            more |= quantize.keywords(plan, config.dtype if plan.dtype == "auto" else getattr(torch, plan.dtype))
            with observing(plan, observed), quantize.observing(plan, observed):
                model = auto_class(config.model_type).from_pretrained(path, dtype=plan.dtype, **safe, **more)
            quantize.finish(model, plan)
            model = moved(model, plan, observed)
        return Bench(plan, model, tokenizer, observed)


@contextlib.contextmanager
def _reading_once() -> Iterator[None]:
    """transformers 5.22 reads a GGUF file three times (2 s each for 49,152 words) and makes the same table of tensor
    names for each of its modules: remembered for the time of the load, SmolLM2 takes 10 s, not 16."""
    import gguf

    plain = gguf.GGUFReader, gguf.get_tensor_name_map
    gguf.GGUFReader, gguf.get_tensor_name_map = (functools.cache(make) for make in plain)
    try:
        yield
    finally:
        gguf.GGUFReader, gguf.get_tensor_name_map = plain


class DownloadFailed(Exception):
    """The Hub did not give the files; the text says what it said."""


def _download(repo: str, revision: str, outbox: Outbox) -> Path:
    """Fetch a Hub snapshot: safetensors and text files only, nothing that can run."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
    from tqdm import tqdm

    with outbox.phasing("download", repo) as steps:

        class Bar(tqdm):  # type: ignore[misc]
            """Passes the byte count of the running downloads on as progress."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **{**kwargs, "disable": False, "file": _Nowhere(), "mininterval": 0.5})

            def display(self, *args: Any, **kwargs: Any) -> bool:
                if self.total:
                    done = "bytes" if self.unit == "B" else "files"
                    steps.step(min(1.0, self.n / self.total), f"{self.n:,} of {self.total:,} {done}")
                return True

        try:
            path = snapshot_download(
                repo,
                revision=revision or None,
                allow_patterns=_WANTED_FILES,
                ignore_patterns=["*/*"],  # a folder inside holds the same weights in another layout
                tqdm_class=Bar,
            )
        except GatedRepoError as error:
            page = f"https://huggingface.co/{repo}"
            raise InputError(f"{repo} is gated. Accept its licence at {page}, then log in: hf auth login.") from error
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            what = f"{repo}@{revision}" if revision else repo
            raise InputError(f"The Hub has no {what}. Check the name at https://huggingface.co/models.") from error
        except Exception as error:  # connections, time-outs, full disks: their types differ between versions
            raise DownloadFailed(f"{type(error).__name__}: {error}") from error
    if not any(Path(path).glob("*.safetensors")):
        raise InputError(
            f"{repo} has no safetensors weights, and pickled ones are not loaded because they can run code. Take a "
            "repository or revision with model.safetensors, or convert it yourself and name the folder."
        )
    return Path(path)


class _Nowhere:
    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass


class _Watching:
    """Reports a load's fraction as the memory that has arrived, every half second while it grows, and takes the peaks
    of host and device memory."""

    def __init__(self, device: str, steps: Steps, expected_bytes: int, observed: Observed) -> None:
        self._steps, self._expected, self._peaks = steps, expected_bytes, observed.peak_bytes
        self._cuda, self._host = device == "cuda", MemoryMeter("cpu").read
        self._read = torch.cuda.memory_allocated if device == "cuda" else MemoryMeter("cpu").read
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="load-progress", daemon=True)

    def __enter__(self) -> "_Watching":
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
        self._base = self._read()
        self._peaks["host"] = self._host()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self._peaks["host"] = max(self._peaks["host"], self._host())
        if self._cuda:
            self._peaks["device"] = torch.cuda.max_memory_reserved()

    def _work(self) -> None:
        last, due_s = 0.0, 0.5
        while not self._stop.wait(HOST_EVERY_S):
            self._peaks["host"] = max(self._peaks["host"], self._host())
            due_s -= HOST_EVERY_S
            if due_s > 0:
                continue
            due_s = 0.5
            grown = max(0, self._read() - self._base)
            fraction = min(0.99, grown / self._expected) if self._expected else None
            if (fraction or grown) > last:
                last = fraction or grown
                self._steps.step(fraction, f"{grown:,} bytes")
