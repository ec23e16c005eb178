"""The short form of `python -m tools.soak web`."""

import random
import time

import pytest

from tools.soak import web


@pytest.mark.full
def test_the_web_process_killed_in_the_middle_of_a_run_loses_nothing_that_was_finished() -> None:
    assert web.kills(1, time.monotonic() + 200, random.Random(1)) == []
