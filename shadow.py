"""An agent's settings with its tools and colleagues looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import cached_property

from msgspec import structs

from actors.config.agents import AgentConfig
from actors.config.limits import LimitsConfig
from actors.config.routes import RoutingConfig
from actors.delegation.loop_guard import DelegationLimits
from actors.messages.inbound import Inbound
from actors.ports import Tool, ToolSource
from actors.rules.markers import tags
from actors.rules.markers.parser import ParserRules
from actors.rules.prompt.brief import NO_FILES, PersonaFiles
from actors.rules.prompt.texts import ReplyStyle
from actors.rules.prompt.transcript import SEND_FILE

QUIET_CHARS = 300
"""Characters beside `HEARTBEAT_OK` that an answer may have and still says nothing."""

TO_SAY_SO = 60.0
"""Seconds that a turn has left when a program has used up all its time."""


@dataclass(frozen=True)
class Persona:
    """The settings of one agent, and what it works with."""

    name: str
    config: AgentConfig
    read_files: Callable[[], PersonaFiles] = PersonaFiles
    """Gives the texts of its folder as they are now; asked whenever the agent's actor
    starts."""

    files: PersonaFiles = NO_FILES
    """These texts; only a turn's own persona has them."""

    zone: tzinfo = UTC
    """In which it is told date and time."""

    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """By name, only those it may use."""

    sources: tuple[ToolSource, ...] = ()
    """Where it has further tools from, that come and go."""

    skills: tuple[str, ...] = ()
    """Names of its skills."""

    colleagues: Mapping[str, str] = field(default_factory=dict[str, str])
    """Whom it may hand work to: name and description."""

    everybody: tuple[str, ...] = ()
    """Names of all agents."""

    called: Mapping[str, str] = field(default_factory=dict[str, str])
    """Their names by all that people call them, case-folded."""

    silent: frozenset[str] = frozenset()
    """Those of them that answer nothing in groups."""

    remembers: bool = True
    """Whether it has a memory (`memory.enabled`)."""

    has_projects: bool = False
    """Whether there are projects that people may work on (`projects.folder`)."""

    reply_styles: Mapping[str, ReplyStyle] = field(
        default_factory=dict[str, "ReplyStyle"]
    )
    """What it is told of writing on each platform, by kind of connector."""

    conducting: str = ""
    """What a conductor is told of the agents it may make; empty: it may make none."""

    program_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """By model that is a program, how long that may take."""

    def as_read(self, files: PersonaFiles) -> Persona:
        """Give this persona with the texts that a turn goes by."""
        return self if files == self.files else replace(self, files=files)

    def spoken_to(self) -> Persona:
        """Give it as it is while another agent speaks to it.

        It leads nobody and hands nothing on, and its marks come to nothing.
        """
        config = structs.replace(self.config, markers=(), is_conductor=False)
        return replace(self, config=config, colleagues={}, conducting="")

    def planning(self) -> Persona:
        """Give it as it is while it decides whether to do anything by itself."""
        wanted = self.config.autonomous.planner or self.config.routing.cheap
        return self._by_itself(wanted, 0)

    def by_itself(self) -> Persona:
        """Give it as it is while it carries out what it has decided."""
        own = self.config.autonomous
        return self._by_itself(own.executor, own.executor_rounds)

    def _by_itself(self, model: str, rounds: int) -> Persona:
        config = structs.replace(
            self.config,
            model=model or self.config.model,
            routing=RoutingConfig(),
            max_tool_rounds=rounds,
        )
        return replace(self, config=config)

    @cached_property
    def shown(self) -> str:
        """What people and clients call it."""
        return self.config.display_name or self.name

    @cached_property
    def known_as(self) -> str:
        """What it is told of its name, and of what people call it."""
        is_alike = self.shown.casefold() == self.name.casefold()
        return (
            self.shown
            if (not (is_alike))
            else f"{self.name} (people call you {self.shown})"
        )

    @property
    def abilities(self) -> tuple[str, ...]:
        """Names of what it can do: its own tools, servers' tools and skills."""
        return tuple(dict.fromkeys((*self.tools, *self.config.tools, *self.skills)))

    @cached_property
    def egress(self) -> ParserRules:
        """Say what of this agent's text counts, and what of it is shown."""
        config = self.config
        families: set[tags.Family] = set(config.markers)
        if config.heartbeat.chat:
            families.add("heartbeat")
        if config.is_conductor:
            families.add("conductor")
        if SEND_FILE in config.tools:
            families.add("files")
        return ParserRules(
            families=frozenset(families),
            hides_narration=config.hide_narration,
            opens_envelopes=config.json_answers,
        )

    @cached_property
    def marks(self) -> frozenset[tags.Family]:
        """Say which marks it may use that come to something."""
        idle: set[tags.Family] = set()
        if not self.config.skills:
            idle.add("skill")
        if not (self.has_projects and self.remembers):
            idle.add("project")
        if not self.remembers:
            idle |= tags.REMEMBERING
        return self.egress.families - idle

    def delegation_limits(self, max_hops: int) -> DelegationLimits:
        """Say what the loop guard must know of this agent."""
        return DelegationLimits(
            agents=self.everybody,
            max_hops=max_hops,
            delegates=tuple(self.colleagues),
        )

    def ack_chars(self, inbound: Inbound) -> int:
        """Say how many characters beside `HEARTBEAT_OK` an answer may have, unheard."""
        is_beat = inbound.occasion == "heartbeat"
        return QUIET_CHARS if is_beat else 0

    def turn_seconds(self, limits: LimitsConfig) -> float:
        """Say how long one turn of this agent may take, in seconds.

        As long as the program may that answers, and some more to tell its result.
        """
        config = self.config
        # By their names: those of servers and skills come and go.
        has_tools = self.tools or config.tools or config.skills or self.colleagues
        rounds = config.max_tool_rounds if has_tools else 1
        scale = min(max(rounds, 1), limits.turn_timeout_scale)
        longest = max(limits.longest_turn, limits.turn_timeout)
        usual = min(limits.turn_timeout * scale, longest)
        program = self.program_seconds.get(config.model)
        return usual if program is None else max(usual, program + TO_SAY_SO)
