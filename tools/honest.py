"""Runs every architecture that transformers can build tiny, with nothing broken, and lists rows of the ledger that are
amber or red: each of them is a false alarm of a check, or a rule that is missing.

    python -m tools.honest [model_type ...] [--json FILE] [--part K/N] [--limit SECONDS]

FILE gets a line of JSON for each architecture; those that it has already are skipped. Each arm runs in a process forked
from this one, which ends it when it has taken its seconds of a processor.
"""

import argparse
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging

from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.counter.model import Refused, count
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.models import counting
from tokendyno.backend.models.counting import Answer
from tokendyno.backend.models.families import ENCODERS, is_encoder
from tokendyno.backend.models.files.config_fields import decode_config
from tools.tiny_config import tiny_config

OWN_LOOP = "cache=static,loop=own"
ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("", {}),
    "bfloat16": ("dtype=bfloat16", {}),
    "static": ("cache=static", {}),
    "own loop": (OWN_LOOP, {}),
    "eager": ("attention=eager", {}),
    "fused": (f"{OWN_LOOP},projections=fused", {}),
    "int8": ("quantization=torchao-int8", {}),
    "drafts": ("speculation=prompt-lookup", {}),
    "batch of 3": ("", {"batch_size": 3}),
    "sampled": ("", {"temperature": 0.8}),
}
"""Name -> choices of the arm, and what its workload has besides 40 tokens of a prompt and 16 new ones."""
ALARMS = ("partial", "no_effect", "failed")
KNOWN = {("yoso", "attention"), ("moshi", "tokens")}
"""Rows of architectures that hardly anybody runs: YOSO samples attention by hashes, and Moshi's window is in its cache
alone, so that one pass over a text sees more than its steps."""
WALL_FACTOR = 15
"""Seconds that may pass for each one of a processor: the machine may be busy with other things."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*", metavar="model_type", help="default: all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where results are appended")
    parser.add_argument("--part", default="1/1", metavar="K/N", help="only each N-th architecture, from the K-th on")
    parser.add_argument("--arms", default=",".join(ARMS), metavar="NAMES", help="default: %(default)s")
    parser.add_argument("--limit", type=float, default=20.0, metavar="SECONDS", help="of a processor for each arm")
    options = parser.parse_args()
    part, parts = (int(number) for number in options.part.split("/"))
    types = options.types or sorted(set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) | ENCODERS)
    lines = options.json.read_text().splitlines() if options.json and options.json.exists() else []
    results = [result for result in map(json.loads, lines) if result["type"] in types]
    done = {result["type"] for result in results}
    for model_type in types[part - 1 :: parts]:
        if model_type in done:
            continue
        result = run_architecture(model_type, options.arms.split(","), options.limit)
        results.append(result)
        print("\n".join(describe(result)), flush=True)
        if options.json:
            with options.json.open("a") as file:
                file.write(json.dumps(result) + "\n")
    return summarize(results)


def run_architecture(model_type: str, arms: list[str], limit_s: float) -> dict[str, Any]:
    """Outcomes by arm; `unbuilt` says why there are none."""
    begin_s = time.monotonic()
    try:
        config = tiny_config(model_type)
        auto = AutoModel if is_encoder(model_type) else AutoModelForCausalLM
        auto._model_mapping[type(AutoConfig.for_model(**config))]  # imported once, for all arms
    except Exception as error:
        return {"type": model_type, "unbuilt": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    result: dict[str, Any] = {"type": model_type, "arms": {}}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TOKENDYNO_CACHE"] = folder  # it is counted once, for all arms
        Path(folder, "config.json").write_text(json.dumps(config))
        for name in arms:
            outcome = in_child(run_arm, (f"random:{folder}", *ARMS[name]), limit_s)
            if unbuilt := outcome.pop("unbuilt", ""):
                return {"type": model_type, "unbuilt": unbuilt.replace(folder, "FOLDER")}
            alarms = [row for row in outcome.get("alarms", ()) if (model_type, row[0]) not in KNOWN]
            result["arms"][name] = outcome | {"alarms": alarms}
    return result | {"seconds": round(time.monotonic() - begin_s, 1)}


def in_child(work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...], limit_s: float) -> dict[str, Any]:
    """What `work` returns in a forked process, or an error that says how that process ended."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_child, args=(work, arguments, limit_s, writer))
    child.start()
    writer.close()
    outcome: dict[str, Any] = {}
    try:
        if reader.poll(limit_s * WALL_FACTOR):
            outcome = reader.recv()
        else:
            outcome = {"error": f"hung: no end after {limit_s * WALL_FACTOR:.0f} s"}
    except EOFError:
        child.join()
        outcome = {"error": f"the process ended by itself, exit code {child.exitcode} (limit: {limit_s:.0f} s of CPU)"}
    child.kill()
    child.join()
    return outcome


def _child(work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...], limit_s: float, out: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the profiler says on each start that it starts
    torch.set_num_threads(1)
    counting._ask = count_here
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit_s), int(limit_s)))
    try:
        out.send(work(*arguments))
    except BaseException:
        out.send({"error": traceback.format_exc()[-1500:]})


def run_arm(model: str, choices: str, work: dict[str, Any]) -> dict[str, Any]:
    """`refused` by the rules, an `error` after they had said yes, or `alarms`; `unbuilt` if there is no such model."""
    workload = Workload(prompt_tokens=40, max_new_tokens=16, ignore_eos=True, **work)
    request = Request(model, [ArmRequest("A", dict(parse_arm(model, choices).choices))], workload)
    bench = open_bench(executor="in-process")
    try:
        if refusal := bench.check(request)["A"].refusal():
            return {"refused": refusal}
        bench.start()
        run = bench.wait(bench.submit(request))
    except InputError as error:
        return {"unbuilt": str(error)}
    finally:
        bench.close()
    if run.status != "done":
        return {"error": run.message}
    ledger = run.snapshot().ledgers["A"]
    rows = [(row.finding.axis, row.status, f"{row.finding.proof} {row.reason}".strip()) for row in ledger]
    return {
        "alarms": [row for row in rows if row[1] in ALARMS],
        "unchecked": [row for row in rows if row[1] == "unchecked"],
        "verified": sum(status == "verified" for _, status, _ in rows),
    }


def count_here(data: bytes, where: str) -> Answer:
    """Count an architecture in this process, instead of in one that would import transformers anew for each."""
    try:
        return Answer(counted=count(decode_config(data.decode())))
    except Refused as reason:
        return Answer(refused=str(reason))


def describe(result: dict[str, Any]) -> Iterator[str]:
    """Lines about an architecture: one, and one for each alarm and error."""
    name = result["type"]
    if unbuilt := result.get("unbuilt"):
        yield f"{name}: not built: {unbuilt}"
        return
    arms = result["arms"]
    refused = sum("refused" in arm for arm in arms.values())
    yield f"{name}: {len(arms) - refused} arms ran, {refused} refused, {result['seconds']:.0f} s"
    for arm, outcome in arms.items():
        for axis, status, proof in outcome.get("alarms", ()):
            yield f"  ALARM {name} [{arm}] {axis} {status}: {proof}"
        if error := outcome.get("error"):
            yield f"  ERROR {name} [{arm}] {error}"


def summarize(results: list[dict[str, Any]]) -> int:
    """Prints alarms, errors and what was not built; 1 if there are any of the first two, or too many of the last."""
    outcomes = [arm for result in results for arm in result.get("arms", {}).values()]
    alarms, errors = sum(len(arm.get("alarms", ())) for arm in outcomes), sum("error" in arm for arm in outcomes)
    unbuilt = [result for result in results if "unbuilt" in result]
    print(
        f"\n{len(results)} architectures, {len(unbuilt)} not built; {len(outcomes)} arms, "
        f"{sum('refused' in arm for arm in outcomes)} refused; {alarms} alarms, {errors} errors"
    )
    for result in results:
        if lines := list(describe(result))[0 if "unbuilt" in result else 1 :]:
            print("\n".join(lines))
    reasons = Counter(f"{axis}: {proof[:80]}" for arm in outcomes for axis, _, proof in arm.get("unchecked", ()))
    for reason, times in reasons.most_common():
        print(f"  unchecked {times} times: {reason}")
    return 1 if alarms or errors or len(unbuilt) > 0.15 * len(results) else 0


if __name__ == "__main__":
    logging.set_verbosity_error()
    sys.exit(main())
