"""The tool `run_shell`: a command line in the agent's own folder, confined.

It reaches the agent's folder and what programs need, no other file, and no network.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import trio

from actors.errors import ToolError
from actors.messages.inbound import ToolResult, ToolSpec
from connectors.sandbox.plan import Confinement, Finished, SandboxError
from connectors.tools.arguments import ArgumentsError, decode_arguments, schema_of

if TYPE_CHECKING:
    from actors.messages.inbound import ToolCall, ToolContext
    from connectors.sandbox.runner import Sandbox
    from connectors.tools.registry import ToolParts

MOST_SECONDS = 120.0
"""Below the time of a turn, so that the model hears of it."""

USUAL_SECONDS = 30.0
MOST_OUTPUT = 16_000
"""Bytes kept of stdout, and a quarter of that of stderr: four thousand tokens."""

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


class RunShellTool:
    """Runs a command line of `sh`.

    Args:
        sandbox: confines it.
        workspace: absolute path of the folder in which each agent has one of its own.
    """

    def __init__(self, sandbox: Sandbox, workspace: Path) -> None:
        self._sandbox = sandbox
        self._workspace = workspace
        self._spec = ToolSpec(
            "run_shell",
            "Run a command line with sh, in your own folder. There is no network, and"
            " nothing but your folder can be changed. Gives the exit code and what was"
            " written; of much output, its beginning and end.",
            schema_of(ShellArguments),
        )

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return self._spec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Run it; a command that fails is a result with `is_error`.

        Raises:
            ToolError: it could not be started.
        """
        await trio.lowlevel.checkpoint()
        try:
            arguments = decode_arguments(call.arguments, ShellArguments)
        except ArgumentsError as error:
            return ToolResult(str(error), is_error=True)
        if "\0" in arguments.command:
            return ToolResult("a command cannot hold the character NUL", is_error=True)
        try:
            folder = await trio.to_thread.run_sync(
                own_folder, self._workspace, context.agent
            )
            finished = await self._sandbox.run(
                ["sh", "-c", arguments.command],
                confinement=Confinement(writable=(folder,)),
                cwd=folder,
                timeout=arguments.timeout,
                max_output=MOST_OUTPUT,
            )
        except (SandboxError, OSError) as error:
            raise ToolError(f"the command was not run: {error}") from error
        is_error = finished.returncode != 0
        return ToolResult(told(finished, arguments.timeout), is_error=is_error)


def own_folder(workspace: Path, agent: str) -> Path:
    """Give the folder of an agent, made if it is missing.

    Raises:
        OSError: it cannot be made.
    """
    folder = workspace / agent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


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
    return RunShellTool(parts.sandbox, Path(parts.config.workspace.path).absolute())
