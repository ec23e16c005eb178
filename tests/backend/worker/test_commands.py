"""A Cancel applies to every Generate before it and to none after it, whenever they are carried out."""

import threading

from tokendyno.backend.messages import Cancel, Generate, Load, Shutdown
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.commands import Commands

PLAN = Plan(LoadPlan(ModelSource("random")))
LOAD = Load(PLAN)


def generate(seed: int) -> Generate:
    return Generate(PLAN, "", 0, 8, 1, 0.0, seed, True, True)


def test_commands_come_in_order_and_end_at_shutdown() -> None:
    commands = Commands()
    for command in (LOAD, generate(1), Shutdown(), generate(2)):
        commands.put(command)
    assert list(commands) == [LOAD, generate(1)]


def test_a_cancel_reaches_the_generate_that_is_running() -> None:
    commands = Commands()
    commands.put(generate(1))
    taken = iter(commands)
    assert next(taken) == generate(1) and not commands.cancelled.is_set()
    commands.put(Cancel())
    assert commands.cancelled.is_set()


def test_a_cancel_before_a_generate_does_not_stop_it_and_one_behind_it_does_even_while_it_waits() -> None:
    commands = Commands()
    for command in (Cancel(), generate(1), LOAD, generate(2), Cancel(), generate(3)):
        commands.put(command)
    seen = [(type(command), commands.cancelled.is_set()) for _, command in zip(range(4), commands, strict=False)]
    assert seen == [(Generate, True), (Load, True), (Generate, True), (Generate, False)]
    commands = Commands()
    for command in (Cancel(), generate(1)):
        commands.put(command)
    assert next(iter(commands)) == generate(1) and not commands.cancelled.is_set()


def test_abandoned_commands_are_not_carried_out() -> None:
    commands = Commands()
    commands.put(generate(1))
    taken = iter(commands)
    next(taken)
    commands.put(LOAD)
    commands.put(generate(2))
    commands.abandon()
    assert commands.cancelled.is_set() and list(taken) == []


def test_the_reader_waits_for_the_writer() -> None:
    commands = Commands()

    def write() -> None:
        commands.put(LOAD)
        commands.close()

    threading.Timer(0.05, write).start()
    assert list(commands) == [LOAD]
