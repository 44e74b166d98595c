"""What agents work with, as the settings have it now, and how it is renewed.

Tools, servers and skills, who reads attachments, memories. What settings replace may
be in use for as long as a turn may take, so it is put aside before it is closed.

Makes what agents remember with: the embedder, the log book, the tools.

Settings in, a `MemoryKit` out. What needs an HTTP client is imported only for settings
that ask for it.
"""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import trio

from actors.memory.kit import MemoryKit, MemoryMetrics
from actors.rules.prompt.transcript import SEND_FILE
from connectors.config.models import HASHING, OFF, EmbedderConfig
from connectors.config.tools import SpeakerConfig, TranscriberConfig, WorkspaceConfig
from connectors.fetch.messages import LateFetcher
from connectors.files.notebook import FileLogBook
from connectors.media.reader import DocumentReader, Reader
from connectors.models.embedders.local import HashingEmbedder
from connectors.tools.registry import ToolParts, make_tools, wanted_tools
from connectors.tools.workspace.files import Desks
from runtime.clock import Clock, SystemClock
from runtime.telemetry.logs import EventLog

if TYPE_CHECKING:
    from actors.ports import (
        Embedder,
        Enclosures,
        MediaReader,
        Speaker,
        Tool,
        Transcriber,
    )
    from connectors.app.reload.rules import Step
    from connectors.app.tool_sources import ToolSources
    from connectors.config.app import AppConfig
    from connectors.files.blobs import BlobFolder
    from connectors.sandbox.runner import Sandbox
    from runtime.actor.ref import ActorRef
    from runtime.store.port import Store
    from runtime.telemetry.metrics import Metrics


HTTP_EMBEDDER = "connectors.models.embedders.http"
"""Imported only for settings that ask for it: it brings an HTTP client."""

SENDING = "connectors.tools.workspace.files"
"""Imported only if somebody may send files."""

AUDIO = "connectors.models.audio"
"""Imported only for settings that ask for them: they bring an HTTP client."""

MakeTranscriber = Callable[["TranscriberConfig", Callable[[], float]], "Transcriber"]
MakeSpeaker = Callable[["SpeakerConfig", Callable[[], float]], "Speaker"]
MakeEmbedder = Callable[["EmbedderConfig", Callable[[], float]], "Embedder"]


def make_memory(
    app: AppConfig, clock: Clock, metrics: MemoryMetrics, stack: AsyncExitStack
) -> MemoryKit | None:
    """Make what memories work with; None if nothing is to be remembered.

    Raises:
        SettingsError: the embedder's address or key cannot be used.
    """
    config = app.memory
    if not config.enabled:
        return None
    embedder = _embedder(app, clock)
    if embedder is not None:
        stack.push_async_callback(embedder.aclose)
    book = FileLogBook(Path(config.folder)) if config.daily_log else None
    return MemoryKit(config, metrics, embedder, book)


def _embedder(app: AppConfig, clock: Clock) -> Embedder | None:
    name = app.memory.embedder
    if name == OFF:
        return None
    if name == HASHING:
        return HashingEmbedder()
    module = importlib.import_module(HTTP_EMBEDDER)
    make = cast("MakeEmbedder", module.make_embedder)
    return make(app.embedders[name], clock.wall)


def make_enclosures(
    config: AppConfig, desks: Desks, blobs: BlobFolder | None
) -> Enclosures | None:
    """Make what copies files that agents send; None: none of them sends any."""
    if blobs is None or SEND_FILE not in wanted_tools(config):
        return None
    made: Enclosures = importlib.import_module(SENDING).WorkspaceEnclosures(
        desks, blobs
    )
    return made


def make_transcriber(
    config: AppConfig, clock: Clock, stack: AsyncExitStack
) -> Transcriber | None:
    """Make what writes recordings down, if the settings have somebody."""
    if config.media.transcriber is None:
        return None
    module = importlib.import_module(AUDIO)
    make = cast("MakeTranscriber", module.make_transcriber)
    transcriber = make(config.media.transcriber, clock.wall)
    stack.push_async_callback(transcriber.aclose)
    return transcriber


def make_speaker(
    config: AppConfig, clock: Clock, stack: AsyncExitStack
) -> Speaker | None:
    """Make what speaks texts, if the settings have somebody."""
    if config.media.speaker is None:
        return None
    make = cast("MakeSpeaker", importlib.import_module(AUDIO).make_speaker)
    speaker = make(config.media.speaker, clock.wall)
    stack.push_async_callback(speaker.aclose)
    return speaker


def make_media_reader(
    config: AppConfig,
    sandbox: Sandbox,
    stack: AsyncExitStack,
    transcriber: Transcriber | None,
) -> MediaReader:
    """Make what reads attachments; opens nothing before there are some."""
    media = config.media
    fetcher = LateFetcher(config.fetch)
    stack.push_async_callback(fetcher.aclose)
    documents = DocumentReader(sandbox, media.timeout)
    return Reader(media, fetcher.fetch, documents, transcriber)


LOG = EventLog("settings")

SOURCES = "connectors.app.tool_sources"
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


def described_tools(
    config: AppConfig, sandbox: Sandbox, stack: AsyncExitStack
) -> dict[str, Tool]:
    """Make the tools outside a company, to be described and not to be run."""
    desks = Desks(config.workspace)
    clock = SystemClock()
    return make_tools(ToolParts(config, clock, sandbox, desks, stack, nobody, None))


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
            tools = make_tools(
                ToolParts(
                    config=config,
                    clock=clock,
                    sandbox=self.sandbox,
                    desks=desks,
                    stack=stack,
                    find=self.find,
                    store=self.store,
                    blobs=blobs,
                )
            )
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
