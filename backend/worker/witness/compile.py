"""Told by the matrices that graphs of Inductor received in each measured step, by the products that a profile shows
outside of compiled graphs, by CUDA graphs and by whether generated kernels were autotuned."""

from collections.abc import Sequence

import torch._dynamo.utils as dynamo

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import joined
from tokendyno.backend.units import plural
from tokendyno.backend.worker.prove.compile_log import break_places, first_line, guard
from tokendyno.backend.worker.prove.observation import Observation, compiled_calls, products, symbolic_graphs


def find(observation: Observation) -> Finding:
    """How many matrices reached compiled code, of all matrices in all decode steps (or passes of an encoder)."""
    counts, trace = observation.counts, observation.trace()
    steps, reached = counts.graphs.counted_steps or 0, counts.graphs.compiled_matrices
    expected = steps * counts.graphs.matrices
    plan = observation.plan.generate
    planned = plan.compile_mode
    if planned and counts.graphs.counted_steps == 0 and not reached:
        none = "the only token came from the pass over the prompt: no decode step ran that could be compiled"
        return Finding("compile", planned, none, outcome="not_applicable")
    if plan.compile_module and not reached:
        return Finding("compile", "module", _WRAPPED.format(steps), outcome="no_effect")
    launches = "" if trace.launches is None else f"; {trace.launches:,.0f} launches by the host in a traced step"
    if not reached:
        proof = f"in {steps} steps no weight of the model reached code of Inductor{launches}"
        other_graphs = compiled_calls(trace).total()
        if other_graphs:
            proof += f"; {other_graphs} compiled graphs were called in the profile, of another backend"
        if other_graphs and plan.compile_values.backend != "inductor":
            proof = f"{proof}; {_history(observation)}"
            # of the two that generate no code: AOTAutograd counts the graphs that it traced
            backend = "aot_eager" if dynamo.counters["aot_autograd"]["total"] else "eager"
            return Finding("compile", joined("default", _values_in_effect(observation, backend)), proof)
        return Finding("compile", "off", proof)
    graphs = counts.graphs.replayed_steps > 0
    tuned = counts.compilation.tuned_kernels > 0
    names = {(False, False): "default", (False, True): "reduce-overhead", (True, True): "max-autotune"}
    mode = "module" if plan.compile_module else names.get((tuned, graphs), "max-autotune-no-cudagraphs")
    proof = (
        f"compiled code of Inductor received {reached:,} of {expected:,} matrices "
        f"in {counts.graphs.compiled_steps} of {steps} steps"
    )
    outside = products(trace.eager)
    if outside:
        proof += f"; {outside} products of matrices ran outside of compiled graphs in the profile"
    # weights that no graph received are products outside already: others are those of attention
    missed = outside if reached == expected else 0
    mode = joined(mode, _values_in_effect(observation, "inductor"))
    return Finding("compile", mode, f"{proof}; {_history(observation)}{launches}", reached, expected + missed)


_WRAPPED = (
    "in {} steps no weight of the model reached compiled code: torch.compile(model) compiles calls of what it returns, "
    "and generate calls the model inside. To compile the decode step, set compile=default and cache=static."
)


def _values_in_effect(observation: Observation, backend: str) -> dict[str, str]:
    requested, counts = observation.plan.generate.compile_values, observation.counts.compilation
    values = {"backend": backend} if backend != "inductor" else {}
    if requested.fullgraph and not counts.graph_breaks:
        values["fullgraph"] = "true"
    if requested.dynamic is not None and requested.dynamic == bool(symbolic_graphs(observation.trace())[0]):
        values["dynamic"] = str(requested.dynamic).lower()
    places = break_places(dynamo.graph_break_reasons).values() if requested.graph_break and counts.graph_breaks else ()
    if any("graph_break.py:" in place for place in places):
        values["graph_break"] = requested.graph_break
    if counts.inductor_graphs and counts.option_graphs == counts.inductor_graphs:
        values |= {name: str(on).lower() for name, on in requested.options}
    return values


def _history(observation: Observation) -> str:
    counts, places = observation.counts.compilation, break_places(dynamo.graph_break_reasons)
    reasons = map(first_line, dynamo.counters["graph_break"] if counts.graph_breaks else ())
    breaks = [f"{line[:120]} at {places[line]}" if line in places else line[:120] for line in reasons]
    records = dynamo.get_compilation_metrics() if counts.recompiles else ()
    guards = [guard(record.recompile_reason) for record in records if record.recompile_reason]
    parts = [f"{plural(counts.graphs, 'graph')} compiled, compile time (cold) {counts.compile_cold_s:.1f} s"]
    parts.append(f"{plural(counts.graph_breaks, 'graph break')}{_in_brackets(breaks)}")
    parts.append(f"{plural(counts.recompiles, 'recompile')}{_in_brackets(guards)}")
    if counts.cudagraph_skips:
        parts.append(f"{plural(counts.cudagraph_skips, 'CUDA graph')} skipped")
    return ", ".join(parts)


def _in_brackets(lines: Sequence[str]) -> str:
    """The first three of them, in brackets; the document of the run has all."""
    return f" ({'; '.join(lines[:3])}{'; ...' * (len(lines) > 3)})" if lines else ""
