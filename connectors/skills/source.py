"""Offers skills to agents: their names, their texts, their servers' tools.

The tool `use_skill` lets a model read instructions when it needs them. `Using`
remembers which skills are in use in which conversation, and an actor starts the servers
of skills in use and stops those of others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import trio

from actors.messages.inbound import ToolCall, ToolContext, ToolResult, ToolSpec
from actors.ports import Offer, Tool
from actors.rules.prompt import skills as rules
from actors.rules.text.limits import RecentMap
from actors.rules.text.similarity import did_you_mean, near_misses
from connectors.config.mcp import McpServerConfig
from connectors.mcp.session import McpFigures
from connectors.mcp.source import Known, note_of, offer_of
from connectors.mcp.tree import (
    SKILLS,
    STARTER,
    ServerSurroundings,
    actor_of,
    connecting,
    server_spec,
)
from connectors.sandbox.runner import Sandbox
from connectors.skills.folder import (
    LONGEST_PATH,
    BundleError,
    SkillFolder,
    places_of,
    read_bundled,
)
from connectors.tools.arguments import ArgumentsTool, schema_of
from runtime.actor.actor import Actor
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.errors import KernelError
from runtime.supervision.supervisor import StartChild, StopChild
from runtime.telemetry.logs import EventLog

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


LONGEST_TEXT = 100_000
"""Characters of one file as it is given to a model."""

SkillName = Annotated[
    str, msgspec.Meta(max_length=64, description="the skill's name, as listed")
]
FileName = Annotated[
    str,
    msgspec.Meta(
        max_length=LONGEST_PATH,
        description="a file of the skill; left out: its instructions",
    ),
]


class UseSkillArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `use_skill` takes."""

    name: SkillName
    file: FileName = ""


class UseSkillTool(ArgumentsTool[UseSkillArguments]):
    """Gives an agent the text of one of its skills, or of a skill's file."""

    def __init__(
        self,
        skills: Mapping[str, SkillFolder],
        note: Callable[[ToolContext, str], None],
    ) -> None:
        self._skills = skills
        self._note = note
        spec = ToolSpec(
            rules.USE_SKILL,
            "Read the instructions of a skill, or one of its files.",
            schema_of(UseSkillArguments),
            is_repeatable=True,
            effect="read",
            # Why: instructions are to be followed; the operator chose the folder.
            is_own_words=True,
        )
        super().__init__(spec, UseSkillArguments)

    async def answer(
        self, arguments: UseSkillArguments, context: ToolContext
    ) -> ToolResult:
        """Give the text; what is not there is a result with `is_error`."""
        try:
            found = self._skills.get(arguments.name)
            if found is None:
                near = did_you_mean(near_misses(arguments.name, self._skills))
                text = f"there is no skill {arguments.name[:64]!r}.{near}"
                return ToolResult(text, is_error=True)
            self._note(context, arguments.name)
            if not arguments.file:
                return ToolResult(rules.unfolded(found.skill))
            text = await trio.to_thread.run_sync(
                read_bundled, found.path, arguments.file
            )
        except BundleError as error:
            text = f"the file cannot be had: {error}"
            return ToolResult(text, is_error=True)
        if len(text) > LONGEST_TEXT:
            left = len(text) - LONGEST_TEXT
            text = f"{text[:LONGEST_TEXT]}\n[cut: {left} more characters]"
        return ToolResult(text or "(the file is empty)")


Conversation = tuple[str, str, str, str]
"""Agent, connector, chat and thread."""

MOST_CONVERSATIONS = 10_000


def conversation_of(context: ToolContext) -> Conversation:
    """Name the conversation in which something is asked."""
    address = context.address
    return (context.agent, address.connector, address.chat, address.thread)


class Using:
    """When each skill was last used, by conversation and altogether.

    Args:
        idle_after: seconds without a use after which it is no longer in use.
    """

    def __init__(self, idle_after: float) -> None:
        self.idle_after = idle_after
        self._uses: RecentMap[Conversation, dict[str, float]] = RecentMap(
            MOST_CONVERSATIONS
        )
        self._last: dict[str, float] = {}

    def note(self, conversation: Conversation, skill: str, now: float) -> None:
        """Note a use.

        Args:
            now: seconds on a clock that does not go backwards.
        """
        self._last[skill] = now
        self._uses[conversation] = self._uses.get(conversation, {}) | {skill: now}

    def skills(self, conversation: Conversation, now: float) -> tuple[str, ...]:
        """Name the skills in use in a conversation; those no longer are forgotten."""
        uses = self._uses.get(conversation, {})
        for skill in [name for name, at in uses.items() if not self._is_fresh(at, now)]:
            del uses[skill]
        if not uses:
            self._uses.pop(conversation, None)
        return tuple(uses)

    def is_used(self, skill: str, now: float) -> bool:
        """Tell whether a skill is in use anywhere."""
        return self._is_fresh(self._last.get(skill), now)

    def _is_fresh(self, at: float | None, now: float) -> bool:
        return at is not None and now - at < self.idle_after


START_PATIENCE = 10.0
"""Seconds a turn waits until a skill's servers have been begun."""


class UsedTool:
    """A tool of a skill's server; to call it is to use the skill."""

    def __init__(
        self, tool: Tool, skill: str, note: Callable[[ToolContext, str], None]
    ) -> None:
        self._tool = tool
        self._skill = skill
        self._note = note

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        return self._tool.spec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolResult:
        """Note the use, then run the tool."""
        self._note(context, self._skill)
        return await self._tool.run(call, context)


class SkillSource:
    """The skills of all agents.

    Args:
        skills: by agent, its skills by name.
        brought: by skill, its servers; only of those that may be started.
        most_triggered: most skills that one message's words bring along.
        programs: agents whose model is a program, which reads skills by itself.
        find: gives a living actor by its name.
    """

    def __init__(
        self,
        skills: Mapping[str, Mapping[str, SkillFolder]],
        brought: Mapping[str, Brought],
        using: Using,
        most_triggered: int,
        programs: frozenset[str],
        find: Callable[[str], ActorRef | None],
    ) -> None:
        self._skills = skills
        self._brought = brought
        self._using = using
        self._most = most_triggered
        self._programs = programs
        self._find = find

    async def offer(self, context: ToolContext, words: str) -> Offer:
        """List the agent's skills, unfold those called for, offer the tools in use."""
        folders = self._skills.get(context.agent, {})
        if not folders:
            return Offer()
        skills = [folder.skill for folder in folders.values()]
        triggered = rules.triggered(words, skills, self._most)
        named = tuple(each for each in skills if each.name == context.skill)
        called = tuple(dict.fromkeys((*named, *triggered)))
        for skill in called:
            self._note(context, skill.name)
        is_program = context.agent in self._programs
        places = places_of(folders) if is_program else {}
        servers = Offer() if is_program else await self._servers(context)
        return Offer(
            (UseSkillTool(folders, self._note), *servers.tools),
            (
                *(rules.unfolded(each, places.get(each.name, "")) for each in called),
                *servers.notes,
            ),
            (rules.catalogue(skills, places),),
        )

    def _note(self, context: ToolContext, skill: str) -> None:
        self._using.note(conversation_of(context), skill, trio.current_time())

    async def _servers(self, context: ToolContext) -> Offer:
        """Offer the tools of the servers that skills in use bring along."""
        used = self._using.skills(conversation_of(context), trio.current_time())
        tools: list[Tool] = []
        notes: list[str] = []
        for skill in used:
            if skill not in self._brought:
                continue
            known = [
                Known(name, config, actor_of(SKILLS, name))
                for name, config in self._brought[skill].servers.items()
                if not config.disabled
            ]
            if not await self._begin(skill):
                notes += [note_of(each.name, None) for each in known]
                continue
            found = await offer_of(known, lambda _server, _name: True, self._find)
            tools += [UsedTool(tool, skill, self._note) for tool in found.tools]
            notes += found.notes
        return Offer(tuple(tools), tuple(notes))

    async def _begin(self, skill: str) -> bool:
        starter = self._find(STARTER)
        if starter is None:
            return False
        try:
            await starter.ask(StartServers(skill), timeout=START_PATIENCE)
        except (KernelError, *UNANSWERED):
            return False
        return True
