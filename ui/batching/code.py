"""Each arm of many requests as a standalone script, which follows the controls."""

from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import Request
from tokendyno.backend.errors import InputError
from tokendyno.backend.export.batch import batch_script
from tokendyno.backend.models import ModelFacts
from tokendyno.ui.compare.code import no_code

MAX_CHARACTERS = 100_000
"""A longer script is not sent to the browser with every change of a control."""

TOO_LONG = "The script has {:,} characters, mostly requests: too many to show here. Use tokendyno batch --script-a."


def batch_code(checked: Checked, facts: ModelFacts, request: Request, paths: bool) -> str:
    """The script of a checked arm, or why there is none. Without `paths` no folder of this machine is named."""
    assert request.traffic is not None
    try:
        checked.require_runnable()
        text = batch_script(checked, facts, request.workload, request.traffic, paths)
        if len(text) > MAX_CHARACTERS:
            raise InputError(TOO_LONG.format(len(text)))
        return text
    except InputError as error:
        return no_code(str(error))
