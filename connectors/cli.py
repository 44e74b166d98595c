"""The command line: finds the command that is meant, and says what went wrong.

Imports almost nothing: a command's module is loaded only when that command is
called, so `callboard --version` answers at once. Each module in `commands/` gives
its click command the name `command`.
"""

from __future__ import annotations

import errno
import gc
import importlib
import io
import os
import sys
from types import TracebackType
from typing import TextIO

import click

from connectors.commands import (
    describe_error,
    innermost,
    let_go_of_output,
    name_output,
    tell_problems,
)
from runtime import __version__
from runtime.errors import KernelError, SettingsError

COMMANDS = {
    "agents": ("connectors.commands.agents", "Show, add, change or remove agents."),
    "audit": (
        "connectors.commands.audit",
        "Show who asked what, and what came of it.",
    ),
    "backup": ("connectors.commands.backup", "Copy the database, also a busy one."),
    "chat": ("connectors.commands.chat", "Talk with the agents in this terminal."),
    "clients": ("connectors.commands.login:clients_command", "Show or remove clients."),
    "config": ("connectors.commands.config", "Check, show or describe the settings."),
    "conversations": (
        "connectors.commands.conversations",
        "Write conversations to files, and read them back.",
    ),
    "doctor": (
        "connectors.commands.doctor.main",
        "Look at this machine; say what to do.",
    ),
    "forget-person": (
        "connectors.commands.forget_person",
        "Erase all that is kept of somebody.",
    ),
    "hooks": ("connectors.commands.hooks", "Show your own code, and try it out."),
    "init": (
        "connectors.commands.init.main",
        "Write settings: a few questions, no editor.",
    ),
    "login": ("connectors.commands.login", "Log a browser in to the web page."),
    "logs": ("connectors.commands.logs", "Show lines of the log."),
    "nodes": (
        "connectors.commands.nodes",
        "Show the processes of one company; move it.",
    ),
    "pairing": ("connectors.commands.pairing", "Let strangers in, or out again."),
    "people": ("connectors.commands.people", "Show who is known; link accounts."),
    "play": (
        "connectors.commands.play",
        "Play a room from a file, without a network.",
    ),
    "prompt": (
        "connectors.commands.prompt",
        "Show what an agent's model is told.",
    ),
    "queue": (
        "connectors.commands.queue",
        "Look at messages; retry or drop them.",
    ),
    "records": (
        "connectors.commands.records",
        "Compare records with the journal.",
    ),
    "replay": (
        "connectors.commands.replay",
        "Tell what happened in a conversation.",
    ),
    "restore": (
        "connectors.commands.backup:restore_command",
        "Put a copy in the database's place.",
    ),
    "route": (
        "connectors.commands.route",
        "Tell who would hear a message, and why.",
    ),
    "schedule": (
        "connectors.commands.schedule",
        "Reminders, tasks, cron, heartbeats.",
    ),
    "serve": ("connectors.commands.serve", "Run all connectors until stopped."),
    "status": (
        "connectors.commands.status",
        "How it is doing, on one screen; what to do.",
    ),
    "store": (
        "connectors.commands.store",
        "Move everything to another database.",
    ),
    "tasks": (
        "connectors.commands.schedule:tasks_command",
        "What agents do, will do and did.",
    ),
    "tools": ("connectors.commands.tools", "List what agents can do."),
    "tree": (
        "connectors.commands.status:tree_command",
        "Show the actors of a running company.",
    ),
    "usage": (
        "connectors.commands.logs:usage_command",
        "Sum up tokens, cost and time.",
    ),
    "webhooks": (
        "connectors.commands.webhooks",
        "Events for other programs; tests.",
    ),
}
"""Name, then the module it lives in and the line that `--help` shows. In the module, it
is `command`, or what stands behind the colon."""

# Measured: what `serve` imports makes 110,000 objects that live as long as it does. To
# look through them for garbage again and again was a fifth of the time that took, and
# to do it once is a twelfth; it finds 1 MB.
COLLECTOR_AT_START = (200_000, 10, 10)

NOT_ON_WINDOWS = """\
callboard: Windows is not supported: Callboard needs file locks, signals and a sandbox
  that Windows does not have.
  hint: run it in WSL, Linux inside Windows: `wsl --install` in PowerShell, once; then
  install and run Callboard in the Linux terminal that opens"""

FAILED = 1
INTERNAL = 70
INTERRUPTED = 130

SHOW_TRACEBACK = "CALLBOARD_TRACEBACK"
"""Set it to anything, and a mistake of the program shows where it happened."""


class LazyGroup(click.Group):
    """A group that loads a command's module only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's
        """Name all commands, without loading one."""
        return sorted(COMMANDS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Load one command; None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: object = getattr(importlib.import_module(module), name or "command")
        if not isinstance(command, click.Command):
            raise TypeError(f"{COMMANDS[cmd_name][0]} is no click command")
        # Why here: `callboard --version` and a mistyped command need none of it.
        from connectors.commands.common.output import answer_programs  # noqa: PLC0415

        answer_programs(command, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; refuse a mistyped one with the nearest that there are."""
        name = args[0]
        if name in COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        import difflib  # noqa: PLC0415  only a mistyped command needs it

        near = " or ".join(map(repr, difflib.get_close_matches(name, COMMANDS, n=2)))
        meant = f" Did you mean {near}?" if near else ""
        raise click.UsageError(f"No such command {name!r}.{meant}", ctx)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002  click's signature
        formatter: click.HelpFormatter,
    ) -> None:
        """List the commands in `--help` from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=(
        "Exit codes: 0 all is well; 1 it could not be done (wrong settings, and "
        "the like); 2 the command line is wrong; 70 a mistake in Callboard itself; "
        "130 interrupted."
    ),
)
@click.version_option(__version__, message="callboard %(version)s")
def callboard() -> None:
    """Run a company of chat agents.

    Try it without a key and without a network: callboard chat. Make settings of your
    own by a few questions: callboard init.
    """


def main() -> None:
    """Run the command line, and end the process with one of its exit codes."""
    if sys.platform == "win32":
        click.echo(NOT_ON_WINDOWS, err=True)
        sys.exit(FAILED)
    gc.set_threshold(*COLLECTOR_AT_START)
    sys.excepthook = tell_mistake
    name_output()
    sys.exit(run())


def run(arguments: list[str] | None = None) -> int:
    """Run one command line and say what went wrong; never with a traceback.

    Args:
        arguments: without the program's name; None: the process's own.

    Returns:
        The exit code.
    """
    as_json = wants_json(sys.argv[1:] if arguments is None else arguments)
    try:
        result: object = callboard.main(
            arguments, prog_name="callboard", standalone_mode=False
        )
    except (click.ClickException, click.Abort, KernelError, OSError) as error:
        return tell_failure(error, as_json=as_json)
    return result if isinstance(result, int) else 0


def tell_failure(error: Exception, *, as_json: bool) -> int:
    """Say why a command was not carried out, to people or a program.

    Returns:
        The exit code.
    """
    settings = error if isinstance(error, SettingsError) else None
    exit_code, text = FAILED, str(error)
    if isinstance(error, OSError):
        return tell_system(error, as_json=as_json)
    if isinstance(error, click.ClickException):
        exit_code, text = error.exit_code, error.format_message()
    if isinstance(error, click.Abort):
        exit_code, text = INTERRUPTED, "interrupted"
    if as_json:
        tell_program(text, exit_code, settings)
    elif settings is not None:
        tell_problems(settings)
    elif isinstance(error, click.ClickException):
        shown = io.StringIO()
        error.show(shown)
        click.echo(wrapped(shown.getvalue()), err=True, nl=False)
    elif isinstance(error, KernelError):
        click.echo(wrapped(f"callboard: {text}"), err=True)
    return exit_code


def wrapped(text: str) -> str:
    """Break an error between words, if it is written to a terminal."""
    from connectors.commands.common import output  # noqa: PLC0415

    return output.wrapped(text, sys.stderr)


def wants_json(arguments: list[str]) -> bool:
    """Tell whether a command line has `--json`, also one that click refuses."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def tell(text: str, exit_code: int, *, as_json: bool) -> None:
    """Say what went wrong, to people or to a program."""
    if as_json:
        tell_program(text, exit_code)
    else:
        click.echo(wrapped(f"callboard: {text}"), err=True)


def tell_program(
    text: str, exit_code: int, settings: SettingsError | None = None
) -> None:
    """Say to a program what went wrong: one object, the last line of standard error.

    Args:
        settings: names each mistake with its place, if settings are wrong.
    """
    # Why here: only a command that failed, and only for a program, needs it.
    import json  # noqa: PLC0415

    found: dict[str, object] = {"error": text, "exit_code": exit_code}
    if settings is not None:
        found["problems"] = [
            {
                "file": each.file and str(each.file),
                "text": str(each),
                "hint": each.hint or "",
            }
            for each in settings.problems
        ]
    click.echo(json.dumps(found, ensure_ascii=False), err=True)


def tell_system(error: OSError, *, as_json: bool = False) -> int:
    """Say what the machine refused; give the exit code.

    Args:
        as_json: whether a program is told.
    """
    if error.errno != errno.EPIPE:  # whoever read our output (`head`) is gone
        tell(describe_error(error), FAILED, as_json=as_json)
    output: TextIO | None = sys.stdout  # None if it was closed before the start
    try:
        if output is not None:
            output.flush()
    except OSError:
        let_go_of_output()
    return FAILED


def tell_mistake(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Say in one line what nobody expected, and end with its exit code.

    Python calls this for an exception that nothing has caught.
    """
    if os.environ.get(SHOW_TRACEBACK):
        sys.__excepthook__(kind, error, trace)
    elif isinstance(first := innermost(error), KeyboardInterrupt):
        # Ctrl-C while the program was still starting: nobody's mistake.
        os._exit(INTERRUPTED)
    else:
        text = (
            f"internal error: {type(first).__name__}: {first}\n"
            f"  hint: set {SHOW_TRACEBACK}=1 to see where, and please report it"
        )
        tell(text, INTERNAL, as_json=wants_json(sys.argv[1:]))
    sys.stderr.flush()
    os._exit(INTERNAL)
