"""`callboard hooks`: shows how the operator's own code is doing, and tries it out."""

from __future__ import annotations

from pathlib import Path
from typing import cast, get_args

import click
import msgspec
import trio

from actors.hooks.book import AskHook, FinishedTurn, HookSubject, TellHook
from actors.hooks.chain import Event, Verdict
from connectors.admin.display import make_safe, when
from connectors.app.hooks import all_hooks
from connectors.commands import config_option
from connectors.commands.common.database import database_of, load_settings
from connectors.commands.common.output import (
    FAILED,
    first_words,
    json_option,
    rows_options,
    say,
    say_json,
    say_rows,
)
from connectors.commands.common.running import (
    private_files,
    redacting,
    run_interruptible,
)
from connectors.config.app import AppConfig
from connectors.config.hooks import HookConfig
from connectors.hooks.hook import HOOK, HookError, HookRecord
from connectors.hooks.runner import Connect, HookConnection
from connectors.hooks.tree import connecting, in_order
from connectors.sandbox.runner import sandbox_of
from runtime.config.loader import Settings
from runtime.store.database import Database
from runtime.telemetry.logs import writing

HEADERS = ("HOOK", "STATE", "ASKED", "CHANGED", "CANCELLED", "FAILED", "LAST ERROR")
SHOWN = 60

START_TIMEOUT = 60.0
"""Seconds until its code must have been started."""


class HookRow(msgspec.Struct, frozen=True):
    """One hook, for programs."""

    name: str
    events: tuple[str, ...]
    runs: str
    on_failure: str
    state: str
    reason: str
    seen: HookRecord | None
    """As the last server wrote it down; null: none has run it yet."""


@click.group()
def command() -> None:
    """Show how hooks are doing, and try one out."""


@command.command(name="list")
@config_option
@rows_options
def list_hooks(config: Path | None, *, as_json: bool) -> None:
    """Show all hooks in the order in which they are asked.

    Counts are since the server was started, and a few seconds old at most.
    """
    app = load_settings(config, may_fall_back=True).value
    seen, hooks = _written(database_of(app)), all_hooks(app)
    rows = [_shown(name, each, seen.get(name)) for name, each in in_order(hooks)]
    rows += [_shown(name, each, None) for name, each in hooks.items() if each.disabled]
    say_rows(rows, HEADERS, _cells, "There are no hooks.", as_json=as_json)


def _written(database: Database) -> dict[str, HookRecord]:
    """Read what servers wrote down; nothing if there is no database yet."""
    if not database.exists():
        return {}
    with database.inspect() as rows:
        found = [
            msgspec.json.decode(row.body, type=HookRecord) for row in rows.records(HOOK)
        ]
    return {each.name: each for each in found}


def _shown(name: str, config: HookConfig, seen: HookRecord | None) -> HookRow:
    state, reason = "never run", ""
    if config.disabled:
        state = "disabled"
    elif seen is not None:
        state, reason = seen.state, seen.reason
    return HookRow(
        name=name,
        events=config.events,
        runs=f"python {config.python}" if config.python else " ".join(config.command),
        on_failure=config.on_failure,
        state=state,
        reason=reason,
        seen=seen,
    )


def _cells(row: HookRow) -> tuple[object, ...]:
    if row.seen is None:
        return (row.name, row.state, "", "", "", "", "")
    counts, error = row.seen.counts, row.seen.last_error
    told = f"{when(row.seen.last_error_at)} {first_words(error, SHOWN)}"
    numbers = (counts.asked, counts.changed, counts.cancelled, counts.failed)
    return (row.name, row.state, *numbers, told if error else "")


@command.command(name="try")
@config_option
@click.argument("name")
@click.argument("text")
@click.option(
    "--event",
    type=click.Choice(get_args(Event)),
    help="What it is asked about. Without it: the first that it is for.",
)
@click.option("--connector", default="", help="Where the words come from or go to.")
@click.option("--agent", default="", help="Whose answer it is.")
@click.option("--sender", default="you", help="Who wrote.")
@json_option
def try_hook(config: Path | None, name: str, text: str, **given: object) -> int:
    """Start one hook by itself, ask it about TEXT, and show its verdict.

    Nothing is stored or sent. Exits with 1 if there is no verdict.
    """
    settings = load_settings(config, may_fall_back=True)
    hooks = all_hooks(settings.value)
    if name not in hooks:
        known = ", ".join(hooks) or "none"
        raise click.BadParameter(f"there is no hook {name!r}; known: {known}")
    about = HookSubject(
        id="try",
        correlation_id="try",
        connector=str(given["connector"]) or next(iter(settings.value.connectors), ""),
        chat="try",
        sender_id=str(given["sender"]),
        sender_name=str(given["sender"]),
        agent=str(given["agent"]),
    )
    event = cast("Event", given["event"] or hooks[name].events[0])
    asked = AskHook(event=event, about=about, text=text)
    connect = _connecting(name, hooks[name], settings)
    with writing(level="info", shape="text", redactor=redacting(settings)):
        verdict = run_interruptible(_asked, hooks[name], connect, asked)
    if isinstance(verdict, HookError):
        if given["as_json"]:
            say_json({"error": str(verdict), "trouble": verdict.trouble})
        else:
            click.echo(f"no verdict ({verdict.trouble}): {verdict}", err=True)
        return FAILED
    if given["as_json"]:
        say_json(verdict)
    elif verdict is None:
        say("told")
    else:
        why = f": {first_words(verdict.reason, 500)}" if verdict.reason else ""
        say(verdict.action + why)
        if verdict.text:
            say(make_safe(verdict.text))
    return 0


def _connecting(name: str, hook: HookConfig, settings: Settings[AppConfig]) -> Connect:
    config = settings.value
    sandbox = sandbox_of(config, private_files(settings))
    return connecting(name, hook, sandbox, Path(config.workspace.path).absolute())


async def _asked(
    hook: HookConfig, connect: Connect, asked: AskHook
) -> Verdict | HookError | None:
    """Start a hook and ask it once; None: it was only told."""
    seconds, what = START_TIMEOUT, "start"
    with trio.CancelScope(deadline=trio.current_time() + seconds) as scope:
        try:
            async with connect() as connection:
                seconds, what = hook.timeout, "answer"
                scope.deadline = trio.current_time() + seconds
                return await _answer(connection, asked)
        except HookError as error:
            return error
    return HookError(f"it did not {what} within {seconds:g} s", "timeout")


async def _answer(
    connection: HookConnection, asked: AskHook
) -> Verdict | HookError | None:
    """Ask, or give up as soon as its code ends."""
    found: list[Verdict | HookError | None] = []

    async def ask() -> None:
        try:
            if asked.event == "turn_finished":
                await connection.tell(
                    TellHook(about=asked.about, text=asked.text, ended=EXAMPLE)
                )
                found.append(None)
            else:
                found.append(await connection.ask(asked))
        except HookError as error:
            found.append(error)
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await connection.ending.wait()
        nursery.cancel_scope.cancel()
    return found[0] if found else HookError(connection.ending.reason, "down")


EXAMPLE = FinishedTurn(
    state="replied",
    reason="ok",
    seconds=1.0,
    rounds=1,
    input_tokens=100,
    output_tokens=10,
    cost=0.0,
    model="example",
)
