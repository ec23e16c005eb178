"""Told by cache hits, by the bytes of artefacts, and by the files of the worker's cache before and after."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.units import plural
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """By what was counted since these settings were first used in this worker."""
    counts = observation.counts.compilation
    plan = observation.plan.generate
    if plan.compile_mode is None or plan.compile_values.backend != "inductor":
        return Finding("compile_cache", "torch", "Inductor compiled nothing", outcome="not_applicable")
    hits, misses = counts.fx_cache_hits, counts.fx_cache_misses
    proof = f"{plural(hits, 'graph')} came from a cache, {misses} compiled in {counts.compile_cold_s:.1f} s"
    loaded, saved = counts.artefacts_loaded_bytes, counts.artefacts_saved_bytes
    before, published = counts.cache_files_before, counts.cache_files_published
    if not counts.own_code_files:
        proof += "; no generated code was loaded from this worker's own cache"
        return Finding("compile_cache", "unknown", proof)
    if counts.graphs and not hits and not misses:
        proof += "; torch looked for no graph in its cache: it is switched off"
        return Finding("compile_cache", "unknown", proof)
    if before or published:
        proof += f"; at the start the worker's cache held {before} files, and {published} of its files are shared now"
        return Finding("compile_cache", "torch", proof)
    proof += f"; the worker's cache was empty and holds {counts.own_code_files} files of generated code now"
    if loaded:
        proof += f"; {loaded:,.0f} bytes of artefacts loaded: it took {counts.artefacts_cold_s or 0:.1f} s before"
        return Finding("compile_cache", "artefacts", proof, hits, hits + misses)
    if saved:
        proof += f"; {saved:,.0f} bytes of artefacts saved for the next worker"
        return Finding("compile_cache", "artefacts", proof)
    return Finding("compile_cache", "fresh" if misses and not hits else "unknown", proof)
