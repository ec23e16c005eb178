"""The arms of a run as scripts, where this machine can write them."""

from shlex import quote

from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.export.script import script
from tokendyno.backend.export.short import short_script
from tokendyno.backend.models import check_loadable
from tokendyno.backend.runs.run import Run
from tokendyno.backend.script.source import comment


def scripts_of(run: Run, bench: Bench) -> dict[str, str]:
    """Each arm in a few lines and as a standalone script, or why this machine cannot write it. No folder of this
    machine is named where visitors may not know its folders."""
    scripts = dict[str, str]()
    for arm in run.request.arms:
        config = make_config(run.request.model, arm.choices)
        written = ",".join(f"{axis}={choice}" for axis, choice in config.choices)
        elsewhere = (
            f"On the machine of the run: tokendyno export --model {quote(run.request.model)}"
            f"{f' --arm {quote(written)}' if written else ''}"
        )
        try:
            if bench.machine().device != run.created.device:
                raise InputError(f"The run was on {run.created.device}, and this machine has {bench.machine().device}.")
            checked = bench.check(run.request)[arm.name]
            checked.require_runnable()
            facts = bench.facts(run.request.model)
            check_loadable(facts)
            for name, write in ((f"Arm {arm.name}", short_script), (f"Arm {arm.name}, all of it", script)):
                scripts[name] = write(checked, facts, run.request.workload, bench.local_paths)
        except InputError as error:
            lines = [*comment(f"No script was written here. {error}"), *comment(elsewhere)]
            scripts[f"Arm {arm.name}"] = "\n".join(lines)
    return scripts
