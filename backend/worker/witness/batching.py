"""Static batches are told by what the model received; continuous batching by its steps and layers."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.units import plural
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """Static: rows and padding that the model received. Continuous: layers that wrote into pages, and tokens."""
    counts = observation.counts
    if counts.pages.paged_steps:
        return _continuous(observation)
    rows, batches = counts.static.rows_seen, counts.static.batches
    requests = counts.requests.batch_requests
    if not requests:
        return Finding("batching", "off", "one prompt, no other request")
    padding, expected = counts.static.padding_seen, counts.requests.padding_tokens
    formed = plural(batches, "batch")
    proof = (
        f"{plural(requests, 'request')} in {formed}: the model received {rows} rows and {padding:,} positions of "
        f"padding, of {expected:,} in the batches formed"
    )
    unseen = observation.plan.generate.prefill_graphs  # a replayed pass calls no code of the model
    if batches == requests and (rows == requests or unseen):
        planned = observation.plan.generate.batch.kind
        effective = planned if planned == "static" else "off"
        return Finding("batching", effective, proof, outcome="no_effect" if effective == "static" else "")
    if padding != expected:
        return Finding("batching", "static", proof, min(padding, expected), max(padding, expected))
    return Finding("batching", "static", proof, min(rows, requests), requests)


def _continuous(observation: Observation) -> Finding:
    counts = observation.counts
    steps, calls = counts.pages.paged_steps, counts.pages.paged_layer_calls
    layers = int(observation.model.config.get_text_config(decoder=True).num_hidden_layers)
    useful, generated = counts.requests.useful_tokens, counts.pages.paged_tokens
    proof = (
        f"{generated:,} of {useful:,} tokens came from {steps:,} steps, in which {calls:,} of {steps * layers:,} calls "
        f"of layers wrote into pages; {counts.pages.paged_bytes:,} bytes of pages of "
        f"{counts.pages.page_tokens} tokens"
    )
    if generated != useful:
        return Finding("batching", "continuous", proof, min(generated, useful), max(generated, useful))
    return Finding("batching", "continuous", proof, min(calls, steps * layers), steps * layers)
