"""Resolves what a user typed to the facts of a model, or to an error that says what to do. The facts that follow from a
config are known from the table of architectures, or counted by transformers."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import msgspec

from tokendyno.backend.errors import InputError, shown, unknown
from tokendyno.backend.models.catalogue import CatalogueEntry, catalogue, find
from tokendyno.backend.models.counting import Counted, NotCountedYet, count, without_waiting
from tokendyno.backend.models.facts import RANDOM_ENCODER_NOTE, RANDOM_NOTE, ModelFacts
from tokendyno.backend.models.families import FAMILIES, is_encoder
from tokendyno.backend.models.files import folder, hub
from tokendyno.backend.models.files.config_fields import Fields, encode_config, parse_json, read_json
from tokendyno.backend.models.files.gguf import read_gguf
from tokendyno.backend.models.router import read_router
from tokendyno.backend.models.shape import (
    NOT_SHAPE,
    Shape,
    count_buffer_bytes,
    count_parameters,
    list_matrices,
    read_architecture,
    read_dtype,
    read_quantization,
    read_shape,
)
from tokendyno.backend.models.source import FORWARD, RANDOM, ModelSource, is_random, without
from tokendyno.backend.models.stored import read_stored, usual_dtype


def resolve(ref: str, models_dir: Path | None = None, *, local_paths: bool = True) -> ModelFacts:
    """The facts of a model. README lists the forms of a reference. InputError if there is no such model.

    models_dir   folder in which plain names are also looked up, after the catalogue
    local_paths  False: no path outside `models_dir` is opened (for a page that strangers can reach)
    """
    name = clean(ref)
    if name.lower().startswith(FORWARD):
        return _forward(ref, resolve(without(FORWARD, name), models_dir, local_paths=local_paths))
    if is_random(name):
        return _random(ref, without(RANDOM, name), models_dir, local_paths)
    entry = find(name)
    if entry is not None:
        return _catalogued(ref, entry)
    path = local_path(name, models_dir, local_paths)
    if path is not None:
        return _gguf(ref, path) if path.is_file() else _folder(ref, path, "folder", path.name)
    parsed = hub.parse_reference(name)
    if parsed is None:
        raise _unknown(name)
    return _hub(ref, *parsed)


def check_reference(ref: str, models_dir: Path | None = None, *, local_paths: bool = True) -> None:
    """InputError if no model can be meant by this. Names are compared; nothing is fetched."""
    name = without(RANDOM, clean(without(FORWARD, clean(ref))))
    if find(name) is None and local_path(name, models_dir, local_paths) is None and hub.parse_reference(name) is None:
        raise _unknown(name)


def must_count(ref: str, models_dir: Path | None = None, *, local_paths: bool = True) -> bool:
    """Whether `resolve` would have to wait for transformers to count the architecture, up to a minute."""
    try:
        with without_waiting():
            resolve(ref, models_dir, local_paths=local_paths)
    except NotCountedYet:
        return True
    except InputError:
        return False
    return False


def _unknown(name: str) -> InputError:
    return InputError(
        f"{_nearest('model', name)} Give a Hub model as org/name, a local one as the path of its folder or "
        "GGUF file, random weights as random:NAME, a decoder's forward pass alone as forward:NAME."
    )


def _forward(ref: str, facts: ModelFacts) -> ModelFacts:
    """The facts of a decoder whose forward pass alone is timed. InputError for an encoder, which has nothing else."""
    if facts.kind == "encoder":
        raise InputError(f"{facts.label} is an encoder, whose forward pass is timed anyway. Leave out {FORWARD}")
    source = msgspec.structs.replace(facts.source, forward=True)
    return replace(facts, model=ref, kind="encoder", label=f"{facts.label}, forward pass", source=source)


def _catalogued(ref: str, entry: CatalogueEntry) -> ModelFacts:
    if entry.folder is not None:
        return _folder(ref, entry.folder, "embedded", entry.title)
    facts = _facts(
        ref,
        parse_json(entry.config.encode(), entry.name),
        entry.name,
        ModelSource("hub", repo=entry.repo),
        label=entry.title,
        quantization=entry.quantization,
    )
    return _with_template(facts, hub.snapshot(entry.repo, ""))


def _hub(ref: str, repo: str, revision: str) -> ModelFacts:
    source = ModelSource("hub", repo=repo, revision=revision)
    where, label = f"config.json of {repo}", f"{repo}@{revision}" if revision else repo
    try:
        fetched = hub.fetch_config(repo, revision)
        config, source = parse_json(fetched.config, where), msgspec.structs.replace(source, commit=fetched.commit)
    except hub.HubUnreachable:
        entry = find(repo)
        if entry is None:
            raise
        facts = _catalogued(ref, entry)
        note = f"{facts.note} The Hub could not be reached; these are the catalogue's facts.".strip()
        return replace(facts, source=source, label=label, note=note)
    here = hub.snapshot(repo, source.at)
    if here is not None:
        folder.refuse_quantized_beside(here, config, repo)
    return _with_template(_facts(ref, config, where, source, label=label, here=here), here)


def _folder(ref: str, path: Path, kind: Literal["embedded", "folder"], label: str) -> ModelFacts:
    config = folder.read_config(path)
    folder.refuse_quantized_beside(path, config)
    weights = folder.read_weights(path)
    source = ModelSource(kind, path=str(path.resolve()))
    where = str(path / "config.json")
    return _with_template(_facts(ref, config, where, source, label=label, weights=weights, here=path), path)


def _with_template(facts: ModelFacts, path: Path | None) -> ModelFacts:
    """The facts with what the tokenizer's files in that folder say of chats."""
    template = folder.chat_template(path) if path is not None else None
    if path is None or template is None:
        return facts
    return replace(
        facts,
        has_chat_template=bool(template),
        template_variables=folder.template_variables(template),
        template_parts=folder.takes_parts(template),
    )


def _gguf(ref: str, path: Path) -> ModelFacts:
    file = read_gguf(path)
    return replace(
        _facts(ref, file.config, str(path), ModelSource("gguf", path=str(path.resolve())), label=path.name),
        note="GGUF weights are dequantized on loading, so the model needs as much memory as a dense one.",
    )


def _random(ref: str, name: str, models_dir: Path | None, local_paths: bool) -> ModelFacts:
    """The architecture of a catalogue model or of a folder, with random weights."""
    entry, path = find(clean(name)), None
    if entry is not None:
        config, where, label = parse_json(entry.config.encode(), entry.name), entry.name, entry.title
    else:
        path = local_path(name, models_dir, local_paths)
        if path is None or path.is_file():
            raise InputError(
                f"{_nearest('architecture', name)} Random weights need a model of the catalogue, or a folder with a "
                "config.json."
            )
        if not (path / "config.json").is_file():
            raise InputError(f"The folder {path} has no config.json. Give one that has, or a catalogue model.")
        config, where, label = read_json(path / "config.json"), str(path / "config.json"), path.name
    shape = {key: value for key, value in config.items() if key not in NOT_SHAPE}
    fields = Fields(config, where)
    shape["dtype"] = _dtype(fields, path) or usual_dtype(fields)
    source = ModelSource("random", config_json=encode_config(shape))
    return _facts(ref, shape, where, source, label=f"{label} (random weights)")


def _dtype(fields: Fields, here: Path | None) -> str | None:
    """What `from_pretrained(dtype="auto")` takes: the config's dtype, else that of the weights; None without both."""
    named = read_dtype(fields)
    weights = folder.read_weights(here) if here is not None and named is None else None
    return named or (weights.dtype if weights else None)


def _nearest(what: str, name: str) -> InputError:
    return unknown(what, name, [entry.name for entry in catalogue()])


def _facts(
    ref: str,
    config: dict[str, Any],
    where: str,
    source: ModelSource,
    *,
    label: str,
    quantization: str | None = None,
    weights: folder.Weights | None = None,
    here: Path | None = None,
) -> ModelFacts:
    """`here`: the folder with its files, as far as they are on this machine."""
    known, fields = describe(config, where), Fields(config, where)
    dtype = _dtype(fields, here)
    noise = RANDOM_NOTE if known.kind == "decoder" else RANDOM_ENCODER_NOTE
    notes = [noise * (source.kind == "random")]
    if known.stored and known.stored.layout == "unknown" and weights is None:
        raise InputError(
            f"{where}: the bytes of weights that are quantized like this are not known here ({known.stored.says}). "
            "Download the checkpoint and give its folder, or choose another."
        )
    if known.stored and known.stored.layout == "decompressed":
        notes.append("transformers unpacks compressed-tensors at the first step: it needs as much memory as dense.")
    if known.stored and dtype is None:
        notes.append(f"Its config names no dtype: until its weights are here, {usual_dtype(fields)} is taken for it.")
    return replace(
        known,
        model=ref,
        label=label,
        dtype=dtype or usual_dtype(fields),
        random=source.kind == "random",
        has_chat_template=source.kind != "random",
        source=source,
        quantization=known.quantization or quantization,
        packed_bytes=weights.tensor_bytes if weights else None,
        note=" ".join(note for note in notes if note),
    )


# --- what a user typed ---------------------------------------------------------------------------


MAX_REFERENCE = 1_024


def clean(ref: str) -> str:
    """The reference, stripped. InputError if it cannot name a model: empty, too long, or not printable."""
    if not ref.strip() or len(ref) > MAX_REFERENCE or not ref.isprintable():
        raise InputError(
            f"{shown(ref)!r} cannot be the name of a model. Give a catalogue name (pocket), a Hub id, a folder or a "
            "GGUF file."
        )
    return ref.strip()


def local_path(name: str, models_dir: Path | None, local_paths: bool) -> Path | None:
    """The folder or GGUF file that `name` means; None if it is no local path. InputError: missing, not allowed."""
    path = Path(name)
    inside = not path.is_absolute() and ".." not in path.parts and not name.startswith("~")
    is_gguf = name.lower().endswith(".gguf")
    if models_dir is not None and inside and (in_models_dir := _existing(models_dir / path, is_gguf)):
        return in_models_dir
    path_like = name.startswith(("/", "./", "../", "~", ".\\")) or name in (".", "..") or path.is_absolute()
    path_like |= is_gguf or ".." in path.parts
    if not local_paths:
        if path_like:
            raise InputError(f"Local paths are not allowed here: {name!r}. Choose a listed model, or give a Hub id.")
        return None
    existing = _existing(path, path_like)
    if existing is None and path_like:
        raise InputError(f"There is no folder or GGUF file {name!r}. Check the path.")
    return existing


def _existing(path: Path, file_too: bool) -> Path | None:
    """The path if it is a folder or, with `file_too`, a regular file (not a pipe or a device)."""
    try:
        path = path.expanduser()
        return path if path.is_dir() or (file_too and path.is_file()) else None
    except (OSError, RuntimeError, ValueError):  # too long for the file system, or no such home folder
        return None


# --- what a config states ------------------------------------------------------------------------


def describe(config: dict[str, Any], where: str) -> ModelFacts:
    """All facts that do not depend on where the model lies. InputError if the config is invalid."""
    stated = Fields(config, where)
    if read_architecture(stated) in FAMILIES:
        shape = read_shape(config, where)
        facts = _of_table(shape)
    else:
        facts = counted_facts(config, count(config, where), where)
    router = read_router(facts.architecture, stated.raw)
    return replace(facts, router=router, stored=read_stored(stated, facts.experts > 0))


def _shared(known: Shape | Counted) -> dict[str, Any]:
    """The fields of a row of the table, or of a count, that `ModelFacts` has by the same name."""
    names = known.__struct_fields__ if isinstance(known, Counted) else [field.name for field in fields(known)]
    shared = {field.name for field in fields(ModelFacts)}.intersection(names)
    return {name: getattr(known, name) for name in shared}


def _of_table(shape: Shape) -> ModelFacts:
    shared = _shared(shape) | {
        "kind": "encoder" if is_encoder(shape.architecture) else "decoder",
        "intermediate": shape.expert_width or shape.intermediate,
        "parameters": count_parameters(shape),
        "buffer_bytes": count_buffer_bytes(shape),
        "sinks": shape.family.moe == "gpt_oss",
        "matrices": list_matrices(shape),
    }
    return ModelFacts(model="", label="", source=ModelSource("folder"), random=False, **shared)


def counted_facts(config: dict[str, Any], counted: Counted, where: str = "the config") -> ModelFacts:
    """The facts of a model outside the table, from its count."""
    stated = Fields(config, where)
    kinds = tuple(layers.kind for layers in counted.cache for _ in range(layers.count))
    shared = _shared(counted) | {
        "architecture": read_architecture(stated),
        "layers": max(1, len(kinds)),
        "layer_kinds": kinds,
        "window": max((layers.window for layers in counted.cache if layers.window), default=None),
        "dtype": read_dtype(stated) or "",
        "quantization": read_quantization(stated),
        "matrices": tuple(counted.matrices),
        "float32_in": tuple(counted.float32_in.items()),
        "counted_cache": tuple(counted.cache),
        "counted_workspace": tuple((dtype, tuple(factors)) for dtype, factors in counted.workspace.items()),
    }
    return ModelFacts(model="", label="", source=ModelSource("folder"), random=False, **shared)
