"""What agents work with, as the settings have it now, and how it is renewed.

Tools, servers and skills, who reads attachments, memories. What settings replace may
be in use for as long as a turn may take, so it is put aside before it is closed.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import trio

from actors.memory_kit import MemoryMetrics
from connectors.remembering import make_memory
from connectors.tool_config import WorkspaceConfig
from connectors.toolbox import (
    make_enclosures,
    make_media_reader,
    make_speaker,
    make_tools,
    make_transcriber,
)
from connectors.tools.files import Desks
from connectors.tools.memory import memory_tools
from runtime.logs import EventLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from actors.file_ports import Enclosures
    from actors.memory_kit import MemoryKit
    from actors.ports import MediaReader, Speaker, Tool, Transcriber
    from connectors.blobs import BlobFolder
    from connectors.config import AppConfig
    from connectors.live_table import Step
    from connectors.sandbox.runner import Sandbox
    from connectors.tool_sources import ToolSources
    from runtime.clock import Clock
    from runtime.metrics import Metrics
    from runtime.ref import ActorRef
    from runtime.store import Store

LOG = EventLog("settings")

SOURCES = "connectors.tool_sources"
"""Imported only for settings with servers of tools, or with skills."""

MakeSources = Callable[..., "ToolSources"]

# Chosen: each is a client or two, mostly not even opened. Whoever changes settings more
# often than that while turns run has the oldest closed under them: their next call
# fails, and says so to the model.
MOST_ASIDE = 32
"""Things put aside that are not closed yet."""

PARTS: tuple[Step, ...] = ("tools", "sources", "media", "memory")
"""The steps that are made here."""


@dataclass(frozen=True)
class Kit:
    """What agents work with."""

    tools: Mapping[str, Tool] = field(default_factory=dict[str, "Tool"])
    """By name."""

    desks: Desks = field(default_factory=lambda: Desks(WorkspaceConfig()))
    """The folders in which some of them work."""

    further: ToolSources | None = None
    """Servers of tools and skills, if the settings have any."""

    enclosures: Enclosures | None = None
    """Copies files that agents send."""

    media: MediaReader | None = None
    transcriber: Transcriber | None = None
    speaker: Speaker | None = None
    memory: MemoryKit | None = None
    stacks: Mapping[Step, AsyncExitStack] = field(
        default_factory=dict["Step", AsyncExitStack]
    )
    """By part, what closes it."""


def nobody(_name: str) -> ActorRef | None:
    """Find no actor: there are none yet."""
    return None


@dataclass
class Workbench:
    """Makes kits; has the one in use."""

    clock: Clock
    metrics: Metrics
    store: Store
    sandbox: Sandbox
    find: Callable[[str], ActorRef | None] = nobody
    """Gives a living actor by its name; set as soon as there are some."""

    blobs: BlobFolder | None = None
    """Where files lie that agents send; None: they send none."""

    kit: Kit = field(default_factory=Kit)
    remembering: MemoryMetrics | None = None
    aside: deque[tuple[float, AsyncExitStack]] = field(
        default_factory=deque[tuple[float, AsyncExitStack]]
    )
    """What is not in use any more, and since when (monotonic seconds)."""

    async def make(self, config: AppConfig, parts: tuple[Step, ...] = PARTS) -> Kit:
        """Make some parts anew, and take the others over; nothing is in use yet.

        Args:
            config: checked settings.
            parts: which.

        Raises:
            runtime.errors.SettingsError: something cannot be made; nothing is left.
        """
        kit, stacks = self.kit, dict(self.kit.stacks)
        async with AsyncExitStack() as undo:  # cancelled, too: nobody else closes them
            for part in parts:
                stack = stacks[part] = AsyncExitStack()
                undo.push_async_exit(stack)
                # In a thread: it may read many files, or load a whole library.
                kit = await trio.to_thread.run_sync(
                    self._with, part, kit, config, stack
                )
            undo.pop_all()
        return replace(kit, stacks=stacks)

    def _with(
        self, part: Step, kit: Kit, config: AppConfig, stack: AsyncExitStack
    ) -> Kit:
        clock = self.clock
        if part == "tools":
            # Who works in a folder already goes on to keep others out of it.
            is_same = kit.desks.config == config.workspace
            desks = kit.desks if is_same else Desks(config.workspace)
            blobs = self.blobs
            tools = make_tools(config, clock, self.sandbox, stack, desks, blobs)
            tools |= memory_tools(self.find, clock, self.store)
            copies = make_enclosures(config, desks, blobs)
            return replace(kit, tools=tools, desks=desks, enclosures=copies)
        if part == "media":
            transcriber = make_transcriber(config, clock, stack)
            media = make_media_reader(config, self.sandbox, stack, transcriber)
            speaker = make_speaker(config, clock, stack)
            return replace(kit, media=media, transcriber=transcriber, speaker=speaker)
        if part == "memory":
            if config.memory.enabled and self.remembering is None:
                self.remembering = MemoryMetrics(self.metrics)
            figures = self.remembering
            memory = make_memory(config, clock, figures, stack) if figures else None
            return replace(kit, memory=memory)
        return replace(kit, further=self._further(config))

    def _further(self, config: AppConfig) -> ToolSources | None:
        """Make what servers of tools and skills need, if there are or were any."""
        before = self.kit.further
        if not (config.mcp_servers or config.skills.folders or before):
            return None
        make = cast("MakeSources", importlib.import_module(SOURCES).make_sources)
        return make(config, self.sandbox, self.metrics, self.find, before)

    def use(self, kit: Kit) -> None:
        """Have this one in use; what it replaces is put aside."""
        now = self.clock.monotonic()
        for part, stack in self.kit.stacks.items():
            if kit.stacks.get(part) is not stack:
                self.aside.append((now, stack))
        self.kit = kit

    async def discard(self, kit: Kit) -> None:
        """Close what was made for a kit that is not in use."""
        made = kit.stacks.items()
        await self._close(x for part, x in made if self.kit.stacks.get(part) is not x)

    async def tidy(self, after: float) -> None:
        """Close what was put aside so many seconds ago, or is too much."""
        now = self.clock.monotonic()
        while self.aside and (
            len(self.aside) > MOST_ASIDE or now - self.aside[0][0] >= after
        ):
            await self._close([self.aside.popleft()[1]])

    async def aclose(self) -> None:
        """Close everything."""
        await self._close([*(x for _, x in self.aside), *self.kit.stacks.values()])

    async def _close(self, stacks: Iterable[AsyncExitStack]) -> None:
        """Close each of these, also if closing another fails or is cancelled."""
        async with AsyncExitStack() as closing:
            for stack in stacks:
                closing.push_async_callback(self._close_one, stack)

    async def _close_one(self, stack: AsyncExitStack) -> None:
        try:
            await stack.aclose()
        except OSError as error:
            LOG.warning("something of earlier settings not closed", why=str(error))
