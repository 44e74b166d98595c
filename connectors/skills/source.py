"""What an agent has of skills now: their names, their texts, their servers' tools.

`Using` remembers which skills are in use in which conversation.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping

import trio

from actors.messages.inbound import ToolCall, ToolContext, ToolResult, ToolSpec
from actors.ports import Offer, Tool
from actors.rules.prompt import skills as rules
from connectors.mcp.source import Known, note_of, offer_of
from connectors.mcp.tree import SKILLS, STARTER, actor_of
from connectors.skills.folder import SkillFolder, places_of
from connectors.skills.starter import Brought, StartServers
from connectors.skills.tool import UseSkillTool
from runtime.actor.ref import UNANSWERED, ActorRef
from runtime.errors import KernelError

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
        self._uses: OrderedDict[Conversation, dict[str, float]] = OrderedDict()
        self._last: dict[str, float] = {}

    def note(self, conversation: Conversation, skill: str, now: float) -> None:
        """Note a use.

        Args:
            conversation: where.
            skill: its name.
            now: seconds on a clock that does not go backwards.
        """
        self._last[skill] = now
        self._uses.setdefault(conversation, {})[skill] = now
        self._uses.move_to_end(conversation)
        while len(self._uses) > MOST_CONVERSATIONS:
            self._uses.popitem(last=False)

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
        using: which skills are in use.
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
