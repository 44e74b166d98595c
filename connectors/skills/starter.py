"""The actor that starts the servers of skills in use, and stops those of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from connectors.config.mcp import McpServerConfig
from connectors.mcp.tree import SKILLS, ServerSurroundings, connecting, server_spec
from runtime.actor.actor import Actor
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.errors import KernelError
from runtime.supervision.supervisor import StartChild, StopChild
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Mapping

    from connectors.mcp.metrics import McpFigures
    from connectors.sandbox.runner import Sandbox
    from connectors.skills.source import Using

LOG = EventLog("skills")

# Chosen: the supervisor answers as soon as the server's actors are there.
START_TIMEOUT = 30.0

# Chosen: four times what a server may take to end.
STOP_TIMEOUT = 60.0


class StartServers(msgspec.Struct, frozen=True):
    """Ask for the servers of a skill; answered when they have been begun."""

    skill: str


class LookForIdle(msgspec.Struct, frozen=True):
    """A note to itself: stop the servers of skills that nobody uses."""


class Brought(msgspec.Struct, frozen=True):
    """What a skill brings along."""

    folder: Path
    servers: dict[str, McpServerConfig]


class Starter(Actor):
    """Starts and stops the servers that skills bring along.

    Takes: `StartServers`.
    Sends: `StartChild` and `StopChild` to the supervisor of those servers.
    Keeps: which skills' servers it has started.
    Fails: never by these messages; its next incarnation finds the servers running.
    Ends: with the system, before the servers.
    """

    def __init__(
        self,
        brought: Mapping[str, Brought],
        using: Using,
        sandbox: Sandbox,
        figures: McpFigures,
    ) -> None:
        super().__init__()
        self._brought = brought
        self._using = using
        self._sandbox = sandbox
        self._figures = figures

    def on_start(self) -> None:
        """Begin to look for servers that nobody uses."""
        self.every(self._using.idle_after / 4, LookForIdle())

    async def on_receive(self, message: object) -> None:
        """Start what is asked for; stop what is idle."""
        match message:
            case StartServers(skill=skill):
                await self._start(skill)
            case LookForIdle():
                await self._stop_idle()
            case _:
                super().on_receive(message)

    async def _start(self, skill: str) -> None:
        supervisor = self.find(SKILLS)
        brought = self._brought[skill]
        for name, config in brought.servers.items():
            is_there = self.find(f"{SKILLS}/{name}") is not None
            if config.disabled or is_there or supervisor is None:
                continue
            ground = ServerSurroundings(
                self._sandbox, brought.folder, is_writable=False
            )
            connect = connecting(name, config, ground)
            spec = server_spec(name, config, connect, self._figures)
            LOG.info("starting the server of a skill", skill=skill, server=name)
            try:
                await supervisor.ask(StartChild(spec), timeout=START_TIMEOUT)
            except (KernelError, *UNANSWERED) as error:
                LOG.warning("server not started", server=name, why=str(error))

    async def _stop_idle(self) -> None:
        supervisor = self.find(SKILLS)
        now = trio.current_time()
        idle = [each for each in self._brought if not self._using.is_used(each, now)]
        for skill in idle:
            for name in self._brought[skill].servers:
                if supervisor is not None and self.find(f"{SKILLS}/{name}"):
                    await self._stop(supervisor, name)

    async def _stop(self, supervisor: ActorRef, name: str) -> None:
        """Stop a server; one that does not end now is looked at again."""
        LOG.info("stopping the server of a skill", server=name)
        try:
            order = StopChild(name, forget=True)
            await supervisor.ask(order, timeout=STOP_TIMEOUT)
        except (KernelError, *UNANSWERED) as error:
            LOG.warning("server not stopped", server=name, why=str(error))
