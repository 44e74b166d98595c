"""The tool `run_shell`: a command line in the agent's own folder, confined.

It reaches the agent's folder and what programs need, no other file, and no network. It
is ended when it makes that folder too full; then commands may only remove, until there
is room again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import trio

from actors.errors import ToolError
from actors.messages.inbound import ToolContext, ToolResult, ToolSpec
from connectors.sandbox.plan import (
    LONG_RUNNING,
    Confinement,
    Finished,
    SandboxError,
    SandboxLimits,
)
from connectors.sandbox.runner import Sandbox
from connectors.tools.arguments import ArgumentsTool, schema_of
from connectors.tools.registry import ToolParts
from connectors.tools.workspace.files import Desks, beside
from connectors.tools.workspace.workspace import SpaceLeft, Workspace

MOST_SECONDS = 120.0
"""Below the time of a turn, so that the model hears of it."""

USUAL_SECONDS = 30.0
MOST_OUTPUT = 16_000
"""Bytes kept of stdout, and a quarter of that of stderr: four thousand tokens."""

# Chosen: seconds between two looks at how full the folder is. 10,000 files are counted
# in 0.1 s, and a fast disk takes a gigabyte in that time.
LOOK_EVERY = 1.0

ONLY_REMOVE = "until there is room, a command may only remove files there"

Command = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=20_000,
        description="what sh is given; it starts in your folder, where files stay",
    ),
]
Timeout = Annotated[
    float,
    msgspec.Meta(
        gt=0,
        le=MOST_SECONDS,
        description="seconds until it is ended; 30 if left out",
    ),
]


class ShellArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `run_shell` takes."""

    command: Command
    timeout: Timeout = USUAL_SECONDS


class RunShellTool(ArgumentsTool[ShellArguments]):
    """Runs a command line of `sh`."""

    def __init__(self, sandbox: Sandbox, desks: Desks) -> None:
        self._sandbox = sandbox
        self._desks = desks
        spec = ToolSpec(
            "run_shell",
            "Run a command line with sh, in your own folder. There is no network, and"
            " nothing but your folder can be changed. Gives the exit code and what was"
            " written; of much output, its beginning and end.",
            schema_of(ShellArguments),
        )
        super().__init__(spec, ShellArguments)

    async def answer(
        self, arguments: ShellArguments, context: ToolContext
    ) -> ToolResult:
        """Run it; a command that fails is a result with `is_error`.

        Raises:
            ToolError: it could not be started.
        """
        if "\0" in arguments.command:
            return ToolResult("a command cannot hold the character NUL", is_error=True)
        desk = self._desks.of(context.agent)
        try:
            room = await beside(desk.room)
            finished = await self._watched(arguments, desk, room, context.owner)
            fault = (await beside(desk.room)).fault
        except (SandboxError, OSError) as error:
            raise ToolError(f"the command was not run: {error}") from error
        warning = f"{fault}; {ONLY_REMOVE}" if fault else ""
        if finished is None:
            text = f"ended: {warning or 'your folder was full'}"
            return ToolResult(text, is_error=True)
        text = "\n".join(filter(None, (told(finished, arguments.timeout), warning)))
        return ToolResult(text, is_error=finished.returncode != 0)

    async def _watched(
        self,
        arguments: ShellArguments,
        desk: Workspace,
        room: SpaceLeft,
        owner: str,
    ) -> Finished | None:
        """Run it; None if it was ended because it made the folder too full."""
        found: Finished | SandboxError | OSError | None = None
        async with trio.open_nursery() as nursery:
            if not room.fault:
                nursery.start_soon(end_when_full, desk, nursery.cancel_scope)
            try:
                found = await self._sandbox.run(
                    ["sh", "-c", arguments.command],
                    confinement=allowed(desk.path, room),
                    cwd=desk.path,
                    timeout=arguments.timeout,
                    max_output=MOST_OUTPUT,
                    owner=owner,
                )
            except (SandboxError, OSError) as error:
                found = error
            nursery.cancel_scope.cancel()
        if isinstance(found, Exception):
            raise found
        return found


async def end_when_full(desk: Workspace, running: trio.CancelScope) -> None:
    """End what runs as soon as a folder is too full."""
    while not (await beside(desk.room)).fault:  # noqa: ASYNC110  only a count tells
        await trio.sleep(LOOK_EVERY)
    running.cancel()


def allowed(folder: Path, room: SpaceLeft) -> Confinement:
    """Say what a command may do: write no file that there is no room for.

    Programs of Node may be run: memory is bounded where it is in use.
    """
    most = min(SandboxLimits().file_size, room.left)
    limits = SandboxLimits(addresses=LONG_RUNNING.memory, file_size=most)
    if room.fault:
        return Confinement(removable=(folder,), limits=limits)
    return Confinement(writable=(folder,), limits=limits)


def told(finished: Finished, timeout: float) -> str:
    """Say how a command ended and what it wrote."""
    parts = [ending(finished, timeout)]
    for name, raw in (("stdout", finished.stdout), ("stderr", finished.stderr)):
        text = raw.decode("utf-8", "replace").rstrip()
        if text:
            parts.append(f"{name}:\n{text}")
    return "\n".join(parts) if len(parts) > 1 else f"{parts[0]}, nothing was written"


def ending(finished: Finished, timeout: float) -> str:
    """Say in words how a command ended."""
    if finished.timed_out:
        return f"ended after {timeout:g} s, unfinished"
    if finished.flooded:
        return "ended: it wrote without end"
    if finished.overran:
        return "ended: it had too many processes, or too much memory"
    if finished.returncode < 0:
        return f"ended by signal {-finished.returncode}"
    return f"exit code {finished.returncode}"


def make_tool(parts: ToolParts) -> RunShellTool:
    """Make the tool; see `registry.py`."""
    return RunShellTool(parts.sandbox, parts.desks)
