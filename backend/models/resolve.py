"""Resolves what a user typed to the facts of a model, or to an error that says what to do."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from backend.errors import InputError, unknown
from backend.models.catalogue import CatalogueEntry, catalogue, find
from backend.models.facts import RANDOM_NOTE, ModelFacts
from backend.models.families import is_encoder
from backend.models.files import folder, hub
from backend.models.files.config_fields import parse_json, read_json
from backend.models.files.gguf import read_gguf
from backend.models.matrices import list_matrices
from backend.models.parameters import count_buffer_bytes, count_parameters
from backend.models.references import clean, local_path
from backend.models.shape import Shape, read_shape
from backend.models.source import ModelSource

RANDOM = "random:"

NOT_SHAPE = (
    "quantization_config", "auto_map", "_name_or_path", "transformers_version", "architectures",
    "attn_implementation", "_attn_implementation", "experts_implementation", "_experts_implementation",
)  # fmt: skip
"""Config fields that random weights ignore: they are never quantized, and the arm chooses the kernels."""


def resolve(ref: str, models_dir: Path | None = None, *, local_paths: bool = True) -> ModelFacts:
    """The facts of a model. README lists the forms of a reference. InputError if there is no such model.

    models_dir   folder in which plain names are also looked up, after the catalogue
    local_paths  False: no path outside `models_dir` is opened (for a page that strangers can reach)
    """
    name = clean(ref)
    if name.lower().startswith(RANDOM):
        return _random(ref, name[len(RANDOM) :].strip(), models_dir, local_paths)
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


def check_loadable(facts: ModelFacts) -> None:
    """InputError unless local weights are complete. Those of the Hub are only checked when they are downloaded."""
    path = Path(facts.source.path)
    if facts.source.kind in ("embedded", "folder"):
        folder.check_weights(path)
    elif facts.source.kind == "gguf":
        missing_bytes = read_gguf(path).missing_bytes
        if missing_bytes:
            raise InputError(f"{path} is truncated: {missing_bytes:,} bytes are missing. Download or copy it again.")


def _unknown(name: str) -> InputError:
    return InputError(
        f"{_nearest('model', name)} Give a Hub model as org/name, a local one as the path of its folder or "
        "GGUF file, random weights as random:NAME."
    )


def _catalogued(ref: str, entry: CatalogueEntry) -> ModelFacts:
    if entry.folder is not None:
        return _folder(ref, entry.folder, "embedded", entry.title)
    return _facts(
        ref,
        read_shape(parse_json(entry.config.encode(), entry.name), entry.name),
        ModelSource("hub", repo=entry.repo),
        label=entry.title,
        quantization=entry.quantization,
    )


def _hub(ref: str, repo: str, revision: str) -> ModelFacts:
    source = ModelSource("hub", repo=repo, revision=revision)
    where, label = f"config.json of {repo}", f"{repo}@{revision}" if revision else repo
    try:
        shape = read_shape(parse_json(hub.fetch_config(repo, revision), where), where)
    except hub.HubUnreachable:
        entry = find(repo)
        if entry is None:
            raise
        facts = replace(_catalogued(ref, entry), source=source, label=label)
        return replace(
            facts, note=f"{facts.note} The Hub could not be reached; these are the catalogue's facts.".strip()
        )
    return _facts(ref, shape, source, label=label)


def _folder(ref: str, path: Path, kind: Literal["embedded", "folder"], label: str) -> ModelFacts:
    shape = read_shape(folder.read_config(path), str(path / "config.json"))
    weights = folder.read_weights(path)
    source = ModelSource(kind, path=str(path.resolve()))
    return replace(
        _facts(ref, shape, source, label=label, weights=weights), has_chat_template=folder.may_have_chat_template(path)
    )


def _gguf(ref: str, path: Path) -> ModelFacts:
    file = read_gguf(path)
    return replace(
        _facts(
            ref,
            read_shape(file.config, str(path)),
            ModelSource("gguf", path=str(path.resolve())),
            label=path.name,
        ),
        weight_file_bytes=file.file_bytes,
        note="GGUF weights are dequantized on loading, so the model needs as much memory as a dense one.",
    )


def _random(ref: str, name: str, models_dir: Path | None, local_paths: bool) -> ModelFacts:
    """The architecture of a catalogue model or of a folder, with random weights."""
    entry = find(clean(name))
    if entry is not None:
        config, where, label = parse_json(entry.config.encode(), entry.name), entry.name, entry.title
    else:
        path = local_path(name, models_dir, local_paths)
        if path is None or path.is_file():
            raise _unknown_random(name)
        if not (path / "config.json").is_file():
            raise InputError(f"The folder {path} has no config.json. Give one that has, or a catalogue model.")
        config, where, label = read_json(path / "config.json"), str(path / "config.json"), path.name
    shape = read_shape(config, where)
    if not shape.known:
        raise InputError(
            f"{where}: architecture {shape.architecture!r} is not supported with random weights. "
            f"Choose a catalogue model: {', '.join(entry.name for entry in catalogue())}."
        )
    plain = {key: value for key, value in config.items() if key not in NOT_SHAPE}
    plain.setdefault("dtype", shape.dtype or "float32")
    source = ModelSource("random", config_json=msgspec.json.encode(plain, order="deterministic").decode())
    return _facts(ref, replace(shape, quantization=None), source, label=f"{label} (random weights)")


def _unknown_random(name: str) -> InputError:
    return InputError(f"{_nearest('architecture for random weights', name)} A folder with a config.json also works.")


def _nearest(what: str, name: str) -> InputError:
    return unknown(what, name, [entry.name for entry in catalogue()])


def _facts(
    ref: str,
    shape: Shape,
    source: ModelSource,
    *,
    label: str,
    quantization: str | None = None,
    weights: folder.Weights | None = None,
) -> ModelFacts:
    quantization = shape.quantization or quantization
    parameters, exact, notes = count_parameters(shape), shape.known, list[str]()
    if source.kind == "random":
        notes.append(RANDOM_NOTE)
    if not shape.known:
        if weights is not None and quantization is None:
            parameters = weights.elements
        notes.append(f"{shape.architecture} is not modeled here, so its sizes are estimates.")
    if shape.wrapped and source.kind != "random":
        notes.append("Only the text model is counted, not the vision model.")
        exact = False
    return ModelFacts(
        model=ref,
        label=label,
        kind="encoder" if is_encoder(shape.architecture) else "decoder",
        architecture=shape.architecture,
        layers=shape.layers,
        layer_kinds=shape.layer_kinds,
        window=shape.window,
        hidden=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        intermediate=shape.expert_width or shape.intermediate,
        vocab=shape.vocab,
        max_positions=shape.max_positions,
        parameters=parameters,
        parameters_exact=exact,
        buffer_bytes=count_buffer_bytes(shape),
        dtype=shape.dtype or (weights.dtype if weights else None) or "float32",
        tied=shape.tied,
        experts=shape.experts,
        experts_per_token=shape.experts_per_token,
        sinks=shape.family.moe == "gpt_oss",
        random=source.kind == "random",
        has_chat_template=source.kind != "random",
        source=source,
        quantization=quantization,
        weight_file_bytes=weights.file_bytes if weights else None,
        packed_bytes=weights.tensor_bytes if weights else None,
        note=" ".join(notes),
        matrices=list_matrices(shape),
    )
