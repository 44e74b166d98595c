"""Makes what agents can do, and what reads attachments: knows each tool by name.

Settings choose among them by name. What needs an HTTP client is made only if some
agent has it, so that an offline company loads none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from actors.rules.transcript import SEND_FILE
from connectors.blobs import BlobFolder, folder_of
from connectors.fetch.late import LateFetcher
from connectors.media.documents import DocumentReader
from connectors.media.reader import Reader
from connectors.tools.calculate import CalculateTool
from connectors.tools.clock import ClockTool
from connectors.tools.files import Desks, ListFilesTool, ReadFileTool, WriteFileTool
from connectors.tools.run_shell import RunShellTool

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from actors.file_ports import Enclosures
    from actors.ports import MediaReader, Speaker, Tool, Transcriber
    from connectors.config import AppConfig
    from connectors.fetch.messages import Fetch
    from connectors.sandbox.runner import Sandbox
    from connectors.tool_config import (
        FetchConfig,
        SpeakerConfig,
        TranscriberConfig,
        WebSearchConfig,
    )
    from connectors.tools.http_fetch import HttpFetchTool
    from connectors.tools.searching import WebSearch
    from connectors.tools.web_search import WebSearchTool
    from runtime.clock import Clock

SENDING = "connectors.tools.sending"
"""Imported only if somebody may send files."""

TRANSCRIPTION = "connectors.models.transcription"
SPEAKING = "connectors.models.speaking"
"""Imported only for settings that ask for them: they bring an HTTP client."""

ENGINES = "connectors.tools.engines"
FETCHING = "connectors.tools.http_fetch"
SEARCHING = "connectors.tools.web_search"
"""Likewise: they bring a reader of HTML."""

MakeEngine = Callable[["WebSearchConfig", Callable[[str], "Fetch"]], "WebSearch"]
MakeTranscriber = Callable[["TranscriberConfig", Callable[[], float]], "Transcriber"]
MakeSpeaker = Callable[["SpeakerConfig", Callable[[], float]], "Speaker"]


def make_tools(
    config: AppConfig,
    clock: Clock,
    sandbox: Sandbox,
    stack: AsyncExitStack,
    desks: Desks | None = None,
    blobs: BlobFolder | None = None,
) -> dict[str, Tool]:
    """Make the tools, by name; those with a client only if some agent has them."""
    wanted = wanted_tools(config)
    desks = desks or Desks(config.workspace)
    tools: list[Tool] = [
        CalculateTool(),
        ClockTool(clock.wall),
        ListFilesTool(desks),
        ReadFileTool(desks),
        WriteFileTool(desks),
        RunShellTool(sandbox, Path(config.workspace.path).absolute()),
    ]
    if SEND_FILE in wanted:
        blobs = blobs or BlobFolder(folder_of(config), config.files, clock)
        module = importlib.import_module(SENDING)
        tools.append(module.SendFileTool(module.WorkspaceEnclosures(desks, blobs)))
    if "http_fetch" in wanted:
        fetch = way_out(config.fetch, stack)
        make_fetch = cast(
            "type[HttpFetchTool]", importlib.import_module(FETCHING).HttpFetchTool
        )
        tools.append(make_fetch(fetch, config.fetch.page_chars))
    if "web_search" in wanted:
        make_engine = cast("MakeEngine", importlib.import_module(ENGINES).make_engine)
        engine = make_engine(config.web_search, partial(way_out, config.fetch, stack))
        make_search = cast(
            "type[WebSearchTool]", importlib.import_module(SEARCHING).WebSearchTool
        )
        tools.append(make_search(engine, config.web_search.results))
    return {tool.spec.name: tool for tool in tools}


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


def wanted_tools(config: AppConfig) -> frozenset[str]:
    """Name the tools that somebody may have, or whose work is done for somebody."""
    lists = (agent.tools for agent in config.agents.values())
    wanted = {tool for tools in (*lists, config.hiring.tools) for tool in tools}
    if any(x.send_new_images or x.send_tool_images for x in config.agents.values()):
        wanted.add(SEND_FILE)
    return frozenset(wanted)


def make_transcriber(
    config: AppConfig, clock: Clock, stack: AsyncExitStack
) -> Transcriber | None:
    """Make what writes recordings down, if the settings have somebody."""
    if config.media.transcriber is None:
        return None
    module = importlib.import_module(TRANSCRIPTION)
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
    make = cast("MakeSpeaker", importlib.import_module(SPEAKING).make_speaker)
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
    documents = DocumentReader(sandbox, media.timeout)
    return Reader(media, way_out(config.fetch, stack), documents, transcriber)


def way_out(config: FetchConfig, stack: AsyncExitStack, *doors: str) -> Fetch:
    """Give the guarded way out; `doors` are reached besides what is public."""
    fetcher = LateFetcher(config, doors)
    stack.push_async_callback(fetcher.aclose)
    return fetcher.fetch
