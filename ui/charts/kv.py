"""Bytes that the KV cache holds, over the tokens in it, by layer kind, on the track that was predicted.

A layer with a sliding window needs only its window: that line turns flat there, unless the cache does not
know of windows. Kinds are told apart by width (sliding is thick), predictions are thin and dotted, and are
drawn first, so that a measurement runs along its prediction like a train on its track.
"""

from ui.charts.panel import ForEncoder, Panel, Trace

KV = Panel(
    key="kv",
    title="KV cache",
    x_title="tokens in the cache",
    hover="%{x} tokens",
    unit="bytes",
    traces=(
        Trace("sliding", "length", kind="sliding", width=1.2, predicted=True),
        Trace("full", "length", kind="full", width=1.2, predicted=True),
        Trace("kvs", "length", kind="sliding", width=3.0),
        Trace("kvf", "length", kind="full", width=1.2),
    ),
    encoder=ForEncoder("KV cache", "", note="An encoder keeps no KV cache."),
)
