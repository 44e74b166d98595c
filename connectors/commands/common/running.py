"""Runs a company until something ends it: for `chat`, `play` and `serve`.

Runs what a command awaits, so that Ctrl-C ends it in order.
"""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import click
import trio

from connectors.app.reload.reload import SettingsSource, files_of
from connectors.commands import find_settings, given_settings, innermost, tell_problems
from connectors.config.app import AppConfig
from connectors.settings.load import load_app
from runtime.config.loader import Settings
from runtime.signals import stop_signals, wait_for_stop_signal
from runtime.telemetry.log_file import log_file
from runtime.telemetry.logs import Redactor, writing

Wait = Callable[[], Awaitable[object]]

# Chosen: a young collection after 20,000 new objects instead of 700, an old one after
# 100 young ones: with 5,000, memory grew by 55 MB in 100,000 messages. What starts up
# lives as long as the process, so it is frozen out of every later look, and with it
# what is garbage by then: one object in twenty, and a tenth of the start to find them.
# Measured in three pairs of runs, taking turns, of 1,920 messages in 64 chats through
# the whole line: 6 to 13 % more messages.
COLLECTOR = (20_000, 10, 10)


def calm_collector() -> None:
    """Look for circular garbage less often; call it when all has started."""
    gc.freeze()
    gc.set_threshold(*COLLECTOR)


def redacting(settings: Settings[AppConfig]) -> Redactor:
    """Make the redactor that takes the values of secrets out of texts."""
    return Redactor(secret.reveal() for secret in settings.secrets)


def private_files(settings: Settings[AppConfig]) -> tuple[Path, ...]:
    """Name the files that no program of an agent may reach: settings and secrets."""
    return files_of(settings)


@contextmanager
def loaded(
    config: Path | None, log_level: str, *, may_fall_back: bool = False
) -> Generator[SettingsSource]:
    """Load the settings that are meant and write logs while the block runs.

    Args:
        config: the file, if one was named.
        log_level: least level of log lines; empty: what the settings say.
        may_fall_back: take the shipped offline settings if there are none.

    Raises:
        runtime.errors.SettingsError: they are wrong.
        OSError: the file of the log cannot be written.
    """
    found = find_settings(config, Path.cwd(), may_fall_back=may_fall_back)
    if found.note:
        click.echo(found.note, err=True)
    load = partial(load_app, found.path, os.environ, given=given_settings())
    settings = load()
    for warning in settings.warnings:
        tell_problems(warning, "warning: ")
    redactor = redacting(settings)
    log = settings.value.log
    with (
        (
            log_file(Path(log.file), log.max_file_bytes) if log.file else nullcontext()
        ) as file,
        writing(
            level=log_level or log.level,
            shape=log.format,
            redactor=redactor,
            stream=file,
            pace=log.pace,
            has_words=log.texts,
        ) as lines,
    ):
        yield SettingsSource(settings, load, redactor, None if log_level else lines)


async def hearing_signals(
    run: Callable[[trio.Event], Awaitable[object]],
    signals: Iterable[signal.Signals] | None = None,
) -> None:
    """Run something that ends, in order, soon after its event is set.

    Args:
        run: given what is set when the process is told to end.
        signals: those that tell it so; None: all that usually do.

    Why before it starts: Ctrl-C would else raise an exception anywhere in that. Told
    to end meanwhile, it starts and then ends in order; a second signal is at once.

    Raises:
        Exception: what it raised; of a group the first.
    """
    is_told = trio.Event()

    async def watch(task_status: trio.TaskStatus[None]) -> None:
        await wait_told_to_end(task_status, signals)
        is_told.set()

    try:
        async with trio.open_nursery() as watching:
            await watching.start(watch)
            await run(is_told)
            watching.cancel_scope.cancel()
    except ExceptionGroup as failures:  # the nursery's; what failed is in it
        raise innermost(failures) from failures


async def wait_told_to_end(
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    signals: Iterable[signal.Signals] | None = None,
) -> None:
    """Wait for a signal to end; a second one then ends the process at once.

    Args:
        task_status: told when the signals are listened to (`Nursery.start`).
        signals: those that say so; None: all that usually do.

    Why: Python's own Ctrl-C raises an exception somewhere inside the kernel, which
    would only make an end longer that takes too long already. What was accepted is
    durable, so an end at once loses nothing.
    """
    heard = stop_signals() if signals is None else tuple(signals)
    await wait_for_stop_signal(task_status, heard)
    for number in heard:
        signal.signal(number, signal.SIG_DFL)


async def wait_any(*waits: Wait) -> None:
    """Wait until the first of several things has happened.

    Raises:
        Exception: what the first of them raised.
    """

    async def first(wait: Wait) -> None:
        await wait()
        nursery.cancel_scope.cancel()

    try:
        async with trio.open_nursery() as nursery:
            for wait in waits:
                nursery.start_soon(first, wait)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures


Given = TypeVarTuple("Given")
Result = TypeVar("Result")


def run_interruptible(
    work: Callable[[*Given], Awaitable[Result]], *given: *Given
) -> Result:
    """Run something on trio to its end, or until Ctrl-C.

    Why between two steps only: Python's own Ctrl-C raises an exception after any
    line, also inside a library that counts what it holds open. Tried at each of the
    first 200 lines after a question to a model was sent, it ended four times as a
    mistake of the program.

    Raises:
        KeyboardInterrupt: Ctrl-C; alone or in a group.
        Exception: what it raised.
    """
    return trio.run(work, *given, restrict_keyboard_interrupt_to_checkpoints=True)
