"""The tools `memory_search` and `save_memory`: what the agent knows of whoever asks.

Whose memory is meant, the call's context says and nothing the model writes: in a direct
chat the person's, in a group the group's. Nothing else can be searched or changed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Protocol, cast

import msgspec
import pykka

from actors import names
from actors.errors import ChatError, ToolError
from actors.journal.parts import facts_commit
from actors.memory import scopes
from actors.memory.messages import (
    Fact,
    KeepFact,
    NoteSource,
    NotesStored,
    ReviewedNotes,
    ReviewNotes,
    SearchMemory,
)
from actors.messages.inbound import ToolCall, ToolContext, ToolResult, ToolSpec
from actors.messages.keys import chat_partition
from connectors.tools.arguments import ArgumentsError, decode_arguments, schema_of
from connectors.tools.registry import ToolParts
from runtime.clock import Clock
from runtime.errors import KernelError
from runtime.store.port import Store


class Neighbour(Protocol):
    """An actor, as far as these tools need one: `runtime.actor.ref.ActorRef` is."""

    def ask(self, message: object, *, timeout: float) -> Awaitable[object]:
        """Send a message and get its answer."""
        ...

    def tell(self, message: object) -> object:
        """Send a message."""
        ...


Find = Callable[[str], Neighbour | None]
"""Gives the living actor of a name."""

PATIENCE = 10.0
"""Seconds that a memory may take to answer."""

NOBODY = "this agent has no memory now; go on without"


class SearchArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `memory_search` takes."""

    query: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=1_000,
            description="what to look for, in the words it was likely told in",
        ),
    ]
    limit: Annotated[int, msgspec.Meta(ge=1, le=20, description="most facts")] = 5


class SaveArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `save_memory` takes."""

    text: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=2_000, description="one fact, a whole sentence"
        ),
    ]
    category: Annotated[
        str,
        msgspec.Meta(
            max_length=64,
            description="user_preference, project_context, learned_pattern; profile"
            " and sticky are kept for ever",
        ),
    ] = "user_preference"


class MemoryTool:
    """What both tools share: the way to an agent's memory."""

    def __init__(self, find: Find, clock: Clock) -> None:
        self._find = find
        self._clock = clock

    async def _ask(self, agent: str, asked: object) -> object:
        """Ask an agent's memory."""
        memory = self._find(names.memory(agent))
        if memory is None:
            raise ToolError(NOBODY)
        try:
            answer: object = await memory.ask(asked, timeout=PATIENCE)
        except (pykka.Timeout, pykka.ActorDeadError, ChatError, KernelError) as error:
            raise ToolError(f"{NOBODY} ({error})") from error
        return answer


class MemorySearchTool(MemoryTool):
    """Searches what the agent knows of whoever asks."""

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return SEARCH

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Search; finding nothing is no error."""
        try:
            arguments = decode_arguments(call.arguments, SearchArguments)
        except ArgumentsError as error:
            return ToolResult(str(error), is_error=True)
        asked = SearchMemory(
            question=arguments.query,
            scopes=readable(context),
            now=self._clock.wall(),
            limit=arguments.limit,
        )
        facts = cast("tuple[Fact, ...]", await self._ask(context.agent, asked))
        return ToolResult("\n".join(map(shown, facts)) or "Nothing is known of that.")


class SaveMemoryTool(MemoryTool):
    """Stores a fact about the person who asks."""

    def __init__(self, find: Find, clock: Clock, store: Store | None) -> None:
        super().__init__(find, clock)
        self._store = store

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return SAVE

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Remember; the result says what is really kept."""
        try:
            arguments = decode_arguments(call.arguments, SaveArguments)
        except ArgumentsError as error:
            return ToolResult(str(error), is_error=True)
        now = self._clock.wall()
        note = KeepFact(category=arguments.category, text=arguments.text)
        source = source_of(context)
        asked = ReviewNotes(notes=(note,), source=source, now=now)
        considered = cast("ReviewedNotes", await self._ask(context.agent, asked))
        (result,) = considered.results
        if result.outcome == "refused":
            return ToolResult(f"Not kept: {result.text}.", is_error=True)
        if self._store is None:
            raise ToolError("not kept: outside a company nothing is stored")
        try:
            if considered.changes:
                cause = f"{source.message_id}/{','.join(result.ids)}"
                commit = facts_commit(now, considered.changes, cause)
                await self._store.commit(commit)
        except KernelError as error:
            raise ToolError(f"not kept: {error}") from error
        memory = self._find(names.memory(context.agent))
        if memory is not None:
            memory.tell(NotesStored(considered.changes))
        word = "Kept" if result.outcome == "saved" else "Known already"
        return ToolResult(f"{word}: {result.text}")


SEARCH = ToolSpec(
    "memory_search",
    "Search what you remember about whoever you are talking to.",
    schema_of(SearchArguments),
    is_repeatable=True,
    effect="read",
)
SAVE = ToolSpec(
    "save_memory",
    "Remember one fact for later conversations. No secrets, keys or phone numbers.",
    schema_of(SaveArguments),
    effect="write",
)


def accounts_of(context: ToolContext) -> tuple[str, ...]:
    """Say who asks, by all accounts that are known; the first names the person."""
    return context.accounts or (context.person,)


def readable(context: ToolContext) -> tuple[str, ...]:
    """Say whose memory may be read for a call."""
    return scopes.reading(
        context.address,
        accounts_of(context),
        is_direct=context.is_direct,
        member=context.member,
    )


def source_of(context: ToolContext) -> NoteSource:
    """Say where what a call wants kept comes from, and where it belongs."""
    address = context.address
    return NoteSource(
        scope=readable(context)[0],
        readable=readable(context),
        part=chat_partition(address.connector, address.chat),
        by="tool",
        connector=address.connector,
        chat=address.chat,
        sender_id=context.sender_id,
        message_id=context.correlation_id,
        as_of=context.correlation_id,
    )


def shown(fact: Fact) -> str:
    """Write one fact down: when it was told, what it is, how well it fits."""
    what = fact.category or fact.kind
    return f"- [{day_of(fact.created_at)}, {what}, {fact.score:.2f}] {fact.text}"


def day_of(at: float) -> str:
    """Write the date of Unix seconds; of a damaged row's there may be none."""
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
    except (ValueError, OverflowError, OSError):
        return "no date"


def make_memory_search(parts: ToolParts) -> MemorySearchTool:
    """Make the tool; see `registry.py`."""
    return MemorySearchTool(parts.find, parts.clock)


def make_save_memory(parts: ToolParts) -> SaveMemoryTool:
    """Make the tool; see `registry.py`."""
    return SaveMemoryTool(parts.find, parts.clock, parts.store)
