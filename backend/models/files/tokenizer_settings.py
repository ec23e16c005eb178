"""Settings of a tokenizer of a kind on which transformers fails: a number as a special token, or as chat template.

Read from `from_pretrained` in `tokenization_utils_base.py` of transformers 5.22; tests compare with it. Only what
certainly fails is a fault: settings that a tokenizer ignores may be anything.
"""

import json
from pathlib import Path
from typing import Any

from tokendyno.backend.models.files.config_fields import MAX_CONFIG_BYTES, show

SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
SIDES = ("padding_side", "truncation_side")
SETTINGS, SPECIAL_MAP = "tokenizer_config.json", "special_tokens_map.json"
TOKEN = "text, null or an AddedToken is needed"
TEMPLATE = "the text of a template, or a list of templates with their names, is needed"


def read_settings(path: Path) -> dict[str, Any]:
    """The object in a file as Python reads it, which takes Infinity; empty if there is none that can be read."""
    if not path.is_file():  # a pipe would be waited for
        return {}
    try:
        with path.open("rb") as file:
            data = file.read(MAX_CONFIG_BYTES + 1)
        found = json.loads(data.decode()) if len(data) <= MAX_CONFIG_BYTES else None
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def settings_fault(folder: Path) -> str:
    """The first setting on which transformers fails whenever it loads the tokenizer, as "PATH: 'key' is ...; ... is
    needed"; "" if there is none."""
    settings, special = read_settings(folder / SETTINGS), read_settings(folder / SPECIAL_MAP)
    if "added_tokens_decoder" in settings:
        special = {}  # then that file is not read
    for name in SPECIAL:
        value = special.get(name)
        if not (value is None or isinstance(value, str | dict)):
            return _fault(folder / SPECIAL_MAP, name, value, TOKEN)
    settings = {name: value for name, value in settings.items() if name not in special}
    found = _special(settings) or _sides(settings) or _others(settings) or _added(settings)
    if not found and not own_templates(folder) and not _listed(settings.get("chat_template")):
        found = ("chat_template", settings["chat_template"], TEMPLATE)
    return _fault(folder / SETTINGS, *found) if found else ""


def template_fault(folder: Path) -> str:
    """Why no chat can be rendered, though the tokenizer loads, as "'chat_template' is ...; ... is needed"; "" where a
    template is there, or there is none at all."""
    value = read_settings(folder / SETTINGS).get("chat_template")
    if not value or isinstance(value, str) or own_templates(folder) or not _listed(value):
        return ""
    named = {one["name"]: one["template"] for one in value} if isinstance(value, list) else value
    if isinstance(named, dict) and isinstance(named.get("default"), str):
        return ""
    return f"'chat_template' is {show(value)}; {TEMPLATE}"


def own_templates(folder: Path) -> bool:
    """Whether there are files of templates, which count before the settings."""
    return any((folder / name).exists() for name in ("chat_template.jinja", "additional_chat_templates", "tekken.json"))


Found = tuple[str, Any, str]
"""A setting, its value, and what is needed."""


def _fault(path: Path, name: str, value: Any, needed: str) -> str:
    return f"{path}: {name!r} is {show(value)}; {needed}"


def _is_token(value: Any) -> bool:
    if isinstance(value, dict):
        return value.get("__type") == "AddedToken" and isinstance(value.get("content", ""), str)
    return isinstance(value, str)


def _special(settings: dict[str, Any]) -> Found | None:
    for name in SPECIAL:
        value = settings.get(name)
        if value is not None and not _is_token(value):
            return name, value, TOKEN
    return None


def _sides(settings: dict[str, Any]) -> Found | None:
    for name in SIDES:
        if name in settings and settings[name] not in ("left", "right"):
            return name, settings[name], "'left' or 'right' is needed"
    return None


def _others(settings: dict[str, Any]) -> Found | None:
    name, length = settings.get("tokenizer_class"), settings.get("model_max_length")
    if name is not None and not isinstance(name, str):
        return "tokenizer_class", name, "the name of a class or null is needed"
    if length is not None and not isinstance(length, int | float):
        return "model_max_length", length, "a number or null is needed"
    key = "extra_special_tokens" if settings.get("extra_special_tokens") else "additional_special_tokens"
    extra = settings.get(key)
    tokens: Any = extra.values() if isinstance(extra, dict) else extra
    if extra and not (isinstance(extra, list | dict) and all(map(_is_token, tokens))):
        return key, extra, "a list of tokens, or an object of named tokens, is needed"
    return None


def _added(settings: dict[str, Any]) -> Found | None:
    added = settings.get("added_tokens_decoder", {})
    if isinstance(added, dict) and all(_is_added(*item) for item in added.items()):
        return None
    return "added_tokens_decoder", added, "an object of tokens by their ids is needed"


def _is_added(key: str, token: Any) -> bool:
    return key.isdecimal() and isinstance(token, dict) and isinstance(token.get("content", ""), str)


def _listed(template: Any) -> bool:
    """Whether a list of templates, if it is one, has their names and texts."""
    if not isinstance(template, list):
        return True
    return all(isinstance(one, dict) and "template" in one and _hashable(one.get("name", [])) for one in template)


def _hashable(name: Any) -> bool:
    return not isinstance(name, list | dict)
