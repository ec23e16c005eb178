"""Many requests: static batches are told by what the model received, continuous batching by its steps and layers."""

from collections.abc import Callable

from tokendyno.backend.evidence import Finding
from tokendyno.backend.units import plural
from tokendyno.backend.worker.prove.observation import Observation


def batching(observation: Observation) -> Finding:
    """Static: rows that the model received. Continuous: layers that wrote into pages, and tokens."""
    counts = observation.counts
    if counts.pages.paged_steps:
        return _continuous(observation)
    rows, batches = counts.static.rows_seen, counts.static.batches
    requests = counts.requests.batch_requests
    if not requests:
        return Finding("batching", "off", "one prompt, no other request")
    proof = (
        f"{plural(requests, 'request')} in {plural(batches, 'batch')}, with {counts.requests.padding_tokens:,} "
        f"positions of padding: the model received {rows} rows"
    )
    unseen = observation.plan.generate.prefill_graphs  # a replayed pass calls no code of the model
    if batches == requests and (rows == requests or unseen):
        if observation.plan.generate.batch.kind != "static":
            return Finding("batching", "off", proof)
        if not counts.static.order_pairs:
            proof = f"{proof}; none had arrived when the one before it began"
            return Finding("batching", "static", proof, outcome="not_applicable")
        return Finding("batching", "static", proof, outcome="no_effect")
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


def batch_size(observation: Observation) -> Finding:
    """By the fullest step: a smaller limit was not in effect, and one that no step reached changed nothing."""
    counts, batch = observation.counts.requests, observation.plan.generate.batch
    steps, requests = counts.batch_steps, counts.batch_requests
    allowed, fullest = counts.slot_steps // max(1, steps), counts.fullest_step
    planned = min(batch.rows or allowed, requests)
    name = str(batch.rows) if batch.rows else "auto"
    proof = f"the fullest of {steps:,} steps held {fullest} of {plural(requests, 'request')}"
    if fullest > planned or allowed != planned:
        return Finding("batch_size", str(fullest), f"{proof}, where {planned} were planned")
    if fullest < planned and batch.kind != "off":
        return Finding("batch_size", name, f"{proof}: none was full", outcome="not_applicable")
    return Finding("batch_size", name, proof)


def batch_order(observation: Observation) -> Finding:
    """Of each two requests in a row that had both arrived: whether the earlier or the shorter came first."""
    counts = observation.counts
    pairs = counts.static.order_pairs
    in_order = {"arrival": counts.static.order_arrival, "sorted": counts.static.order_sorted}
    if counts.pages.paged_steps:
        return Finding("batch_order", "arrival", "continuous batching forms no batches", outcome="not_applicable")
    if not pairs:
        return Finding("batch_order", "arrival", "no two requests could change places", outcome="not_applicable")
    planned = observation.plan.generate.batch.order
    effective = planned if in_order[planned] == pairs else max(in_order, key=lambda name: in_order[name])
    proof = (
        f"of {pairs} pairs of requests that followed each other, {in_order['arrival']} were in the order of arrival "
        f"and {in_order['sorted']} in the order of their lengths"
    )
    return Finding("batch_order", effective, proof, in_order[effective], pairs)


def page_size(observation: Observation) -> Finding:
    """By the pages that requests took, against those that their lengths need: another size takes more, or less."""
    counts = observation.counts.pages
    size, taken, needed = counts.page_tokens, counts.pages_taken, counts.pages_needed
    if taken is None:
        proof = f"a cache of pages of {size} tokens, all of layers with a sliding window"
        return Finding("page_size", str(size), proof)
    proof = f"requests took {taken:,} pages of {size} tokens; by their lengths they need {needed:,}"
    if counts.restarts:
        proof += f"; {counts.restarts:,} times a request lost its pages and took them again"
        return Finding("page_size", str(size), proof)
    return Finding("page_size", str(size), proof, min(taken, needed), max(taken, needed))


def batch_tokens(observation: Observation) -> Finding:
    """By the widest steps. Where none was filled, a larger budget would have changed nothing."""
    counts = observation.counts.pages
    widest, full = counts.widest_step_tokens, counts.full_steps
    planned = observation.plan.generate.batch.step_tokens
    proof = f"the widest of {counts.paged_steps:,} steps had {widest:,} tokens; {full:,} had {planned:,}"
    if widest > planned:
        return Finding("batch_tokens", str(widest), proof)
    if not full:
        return Finding("batch_tokens", str(planned), f"{proof}: no step was filled", outcome="not_applicable")
    return Finding("batch_tokens", str(planned), proof)


def scheduler(observation: Observation) -> Finding:
    """By the order within steps with a prompt under way and requests that decode; without, both do the same."""
    counts = observation.counts.pages
    contended, prefill = counts.contended_steps, counts.prefill_first_steps
    if not contended:
        reason = "no step had both a prompt under way and requests that decode: both schedulers do the same"
        planned = observation.plan.generate.batch.scheduler
        return Finding("scheduler", planned, reason, outcome="not_applicable")
    proof = f"{prefill:,} of {contended:,} steps with a prompt under way and requests that decode took the prompt first"
    effective = "prefill_first" if 2 * prefill > contended else "fifo"
    return Finding("scheduler", effective, proof, max(prefill, contended - prefill), contended)


def async_batching(observation: Observation) -> Finding:
    """By the steps that were prepared before the one before them was read, which the first has not."""
    counts = observation.counts.pages
    steps, overlapped = counts.paged_steps, counts.overlapped_steps
    proof = f"{overlapped:,} of {steps:,} steps were prepared while the step before was under way"
    if not overlapped:
        return Finding("async_batching", "off", proof)
    return Finding("async_batching", "on", proof, min(overlapped, steps - 1), steps - 1)


def batch_graphs(observation: Observation) -> Finding:
    """By the steps that replayed a graph in which every layer had written into pages. A new size is captured first."""
    counts = observation.counts.pages
    steps, replays, captures = counts.paged_steps, counts.paged_replays, counts.paged_captures
    proof = f"{replays:,} of {steps:,} steps replayed a CUDA graph; {captures:,} were captured during the run"
    if not replays and not captures:
        return Finding("batch_graphs", "off", proof)
    return Finding("batch_graphs", "on", proof, replays, steps)


BY_AXIS: dict[str, Callable[[Observation], Finding]] = {
    find.__name__: find
    for find in (batching, batch_size, batch_order, page_size, batch_tokens, scheduler, async_batching, batch_graphs)
}
