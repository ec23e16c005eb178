"""Hostile inputs of every kind that strangers can hand in: seeds that once did harm somewhere, and what is drawn from
them. Kept deterministic: the same examples each time."""

import json
import struct
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.backend.models.files.test_gguf import LLAMA, gguf
from tests.browser.stored_runs import HOSTILE
from tokendyno.backend.paths import PRESETS

CANARY = "hf_CANARYcanaryCANARYcanaryCANARYcan"
"""In the environment as HF_TOKEN wherever the corpus is read: no answer may hold it."""

POCKET = PRESETS / "models" / "pocket"

SEEDS = [
    *HOSTILE, "", " ", "\x00", "\ud800", "a\u202egnp.exe", "\u2028\u2029", "e\u0301" * 50, "\U0001f469\u200d" * 20,
    "../../../etc/passwd", "/proc/self/environ", "/dev/zero", "file:///etc/passwd", "http://127.0.0.1:9/x", "~root",
    "C:\\Windows\\win.ini", "\\\\host\\share", "con", "%00", "%s%n%n", "{0.__class__}", "${HF_TOKEN}", "$(id)",
    "`id`",
    "'; DROP TABLE runs; --", '"}],"x":[{"', "random:", "random:random:pocket", "pocket@main", "org/name@" + "a" * 300,
    "a" * 5000, "=cmd|' /C calc'!A0", "\x1b]0;title\x07\x1b[2J", "<|endoftext|>",
    "{% for i in range(10**9) %}{% endfor %}",
    "{{ ''.__class__.__mro__ }}", "NaN", "1e309", "-0", "9" * 400,
    "<math><mtext></mtext><mglyph><style><img src onerror=alert(11)>",
    "<template><img src=x onerror=alert(12)></template>", "<details open ontoggle=alert(13)>",
    "<style>@import 'http://127.0.0.1:9';</style>",
    "<base href=http://127.0.0.1:9/>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(14)'>", "]]><!--><script>alert(15)//-->",
]  # fmt: skip

texts = st.one_of(
    st.sampled_from(SEEDS),
    st.text(max_size=200),
    st.text(alphabet=st.characters(categories=["Cc", "Cf", "Co", "Zs", "So"]), max_size=60),
    st.lists(st.sampled_from(SEEDS), min_size=2, max_size=4).map("".join),
)

numbers = st.one_of(
    st.sampled_from([0, -1, 1, 2**31, 2**63, 2**64, 10**30, -(10**30), 0.5, -0.0, 1e308]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
)

values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(st.text(max_size=12), inner, max_size=6)),
    max_leaves=12,
)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _json(value: object) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A valid file, cut, overwritten or with wrong lengths in it."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, min(len(data), 4096) - 1)))
        kind = draw(st.sampled_from(["cut", "bytes", "length", "repeat"]))
        if kind == "cut":
            del data[at:]
        elif kind == "bytes":
            new = draw(st.binary(min_size=1, max_size=32))
            data[at : at + len(new)] = new
        elif kind == "length":
            length = draw(st.sampled_from([0, 1, 255, 2**31, 2**32 - 1, 2**40, 2**63, 2**64 - 1]))
            data[at : at + 8] = struct.pack("<Q", length)
        else:
            piece = data[at : at + draw(st.integers(1, 64))]
            data[at:at] = piece * draw(st.integers(1, 200))
    return bytes(data)


@st.composite
def changed(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    """A valid object with a few fields that are anything."""
    for _ in range(draw(st.integers(1, 4))):
        name = draw(st.one_of(st.sampled_from(sorted(whole)), st.text(max_size=12)))
        whole = {**whole, name: draw(values)}
    return whole


CONFIG = json.loads((POCKET / "config.json").read_text())
ROPE = {
    "rope_type": "longrope",
    "type": "su",
    "factor": 2.0,
    "short_factor": [1.0] * 8,
    "long_factor": [1.0] * 8,
    "rope_theta": 1e4,
    "partial_rotary_factor": 1.0,
    "full_attention": {"factor": 1.0},
}
configs = st.one_of(
    changed(CONFIG).map(_json),
    changed(ROPE).map(lambda rope: _json(CONFIG | {"rope_scaling": rope})),
    damaged((POCKET / "config.json").read_bytes()),
    values.map(_json),
    st.sampled_from([b"[" * 200_000, b'{"a":' * 100_000, b'{"num_hidden_layers":' + b"9" * 500_000 + b"}"]),
)

tokenizers = st.one_of(configs, damaged((POCKET / "tokenizer.json").read_bytes()))


def _safetensors(header: bytes, lie: int) -> bytes:
    return struct.pack("<Q", (len(header) + lie) % 2**64) + header


tensor = st.fixed_dictionaries(
    {
        "dtype": st.one_of(st.sampled_from(["F32", "BF16", "U8", "F4"]), values),
        "shape": st.one_of(st.lists(numbers, max_size=40), values),
        "data_offsets": st.one_of(st.tuples(numbers, numbers).map(list), values),
    }
)
headers = st.one_of(
    st.dictionaries(texts, st.one_of(tensor, values), max_size=8).map(_json),
    st.integers(1, 60_000).map(lambda n: _json({"w": {"dtype": "F32", "shape": [2] * n, "data_offsets": [0, 4]}})),
    st.integers(1, 60_000).map(lambda n: b'{"w":{"dtype":"F32","shape":[' + b"9" * n + b'],"data_offsets":[0,4]}}'),
)
safetensors = st.one_of(
    st.builds(_safetensors, headers, st.sampled_from([0, 0, 0, -1, 1, 2**40, -(2**40)])),
    damaged((POCKET / "model.safetensors").read_bytes()[:20_000]),
)


ggufs = st.one_of(
    damaged(gguf(LLAMA)),
    st.dictionaries(
        st.one_of(st.sampled_from(sorted(LLAMA)), st.text(max_size=20)),
        st.one_of(st.integers(0, 2**32 - 1), st.text(max_size=50), st.lists(st.text(max_size=5))),
        max_size=8,
    ).map(lambda more: gguf({**LLAMA, **more})),
    st.sampled_from([gguf(LLAMA)[:12] + struct.pack("<QQ", 2**63, 2**63), b"GGUF" + b"\xff" * 4096, b"GGUF"]),
)

templates = st.one_of(
    texts.map(_bytes),
    st.binary(max_size=200),
    st.integers(1, 300).map(lambda n: b"{% for i in x %}" * n),
    st.integers(1, 3000).map(lambda n: b"{{ " + b"(" * n),
    st.sampled_from([b"{{ reasoning_effort " * 10_000, b"\xff\xfe{{ x }}", b"x" * (5 << 20)]),
)


@st.composite
def changed_lines(draw: st.DrawFn, lines: list[Any], encode: Callable[[object], bytes]) -> bytes:
    """Records, some of whose fields, at any depth, are anything; some missing or twice."""
    made = json.loads(json.dumps(lines))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(made) - 1))
        kind = draw(st.sampled_from(["field", "field", "drop", "again"]))
        if kind == "drop" and len(made) > 1:
            del made[at]
        elif kind == "again":
            made.insert(at, made[at])
        elif isinstance(made[at], dict):
            inner = made[at]
            for _ in range(draw(st.integers(0, 3))):
                inner = draw(
                    st.sampled_from([inner, *(one for one in inner.values() if isinstance(one, dict) and one)])
                )
            inner[draw(st.sampled_from(sorted(inner)))] = draw(values)
    return encode(made)


def json_lines(made: Any) -> bytes:
    """One value a line."""
    return b"".join(_json(line) + b"\n" for line in made)


REQUESTS = [{"max_new_tokens": 8, "prompt_tokens": 16}, {"max_new_tokens": 8, "token_ids": [1, 2], "arrival_s": 0.5}]
traces = st.one_of(changed_lines(REQUESTS, json_lines), st.binary(max_size=200), values.map(_json))
