"""Workers that are forked, and what happens where they cannot be."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import gone, group, sitecustomize, wait_for, with_path
from tests.support.worker import plan_of
from tokendyno.backend.engine.executor import Died, Inbox
from tokendyno.backend.executors import forked
from tokendyno.backend.executors.forked import ForkedWorker, Template
from tokendyno.backend.messages import Load, Loaded, Ready

pytestmark = pytest.mark.slow


@pytest.fixture
def template(monkeypatch: pytest.MonkeyPatch) -> Iterator[Template]:
    """One of the test's own, which a test may kill."""
    template = Template()
    monkeypatch.setattr(forked, "TEMPLATE", template)
    yield template
    if template.pid is not None and not gone(template.pid):
        os.kill(template.pid, signal.SIGKILL)


def answer(inbox: Inbox, kind: type) -> object:
    """The next event of a kind, whatever comes before it."""
    while not isinstance(body := inbox.get(timeout=120).body, kind):
        assert not isinstance(body, Died), body
    return body


def test_a_worker_survives_what_it_was_forked_from_and_the_next_one_is_a_new_process_and_says_why(
    template: Template,
) -> None:
    inbox: Inbox = Inbox()
    template.begin()
    begun = template.pid
    worker = ForkedWorker(inbox)
    ready = answer(inbox, Ready)
    assert isinstance(ready, Ready) and (ready.pid, ready.import_s, worker.note) == (worker.pid, 0.0, "")
    assert template.pid is not None and template.pid == begun and worker.pid not in group(template.pid)
    os.kill(template.pid, signal.SIGKILL)
    wait_for(lambda: template.trouble != "", what="its end to be noticed")
    worker.send(Load(plan_of()))
    answer(inbox, Loaded)
    other = ForkedWorker(Inbox())
    assert "killed by signal 9" in other.note and other.pids
    other.end()
    os.kill(worker.pid, signal.SIGKILL)
    died = inbox.get(timeout=20).body
    assert isinstance(died, Died) and "had ended before" in died.cause
    wait_for(lambda: not group(worker.pid), what="the group to be gone")


def test_who_waits_for_imports_that_are_cut_short_is_started_as_a_new_process(template: Template) -> None:
    inbox: Inbox = Inbox()
    worker, unwanted = ForkedWorker(inbox), ForkedWorker(Inbox())
    assert worker.alive and worker.pids == ()
    unwanted.end()  # before it is born
    assert not unwanted.alive
    assert template.pid is not None
    os.kill(template.pid, signal.SIGKILL)
    answer(inbox, Ready)
    assert "killed by signal 9" in worker.note and worker.alive and unwanted.pids == ()
    worker.end()
    assert gone(worker.pid)


@pytest.mark.full
def test_where_an_import_starts_a_thread_nothing_is_forked(
    template: Template, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sitecustomize(
        tmp_path,
        "import sys, threading\n"
        "if any('template' in word for word in sys.orig_argv):\n"
        "    threading.Thread(target=threading.Event().wait, daemon=True).start()",
    )
    monkeypatch.setenv("PYTHONPATH", with_path(tmp_path))
    inbox: Inbox = Inbox()
    worker = ForkedWorker(inbox)
    answer(inbox, Ready)
    assert "since an imported package started a thread" in worker.note
    worker.end()
