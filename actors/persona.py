"""An agent's settings with everything looked up: its tools and colleagues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors.ports import Tool, ToolSource
from actors.rules.loop_guard import DelegationLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.config import AgentConfig, LimitsConfig


@dataclass(frozen=True)
class Persona:
    """Who an agent is, and what it works with."""

    name: str
    config: AgentConfig
    files: str = ""
    """Text of the persona's folder, in the order the prompt wants it."""

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

    @property
    def abilities(self) -> tuple[str, ...]:
        """Names of what it can do: its own tools, servers' tools and skills (F185)."""
        return tuple(dict.fromkeys((*self.tools, *self.config.tools, *self.skills)))

    def delegation_limits(self, max_hops: int) -> DelegationLimits:
        """Say what the loop guard must know of this agent."""
        return DelegationLimits(
            agents=self.everybody,
            max_hops=max_hops,
            delegates=tuple(self.colleagues),
        )

    def turn_seconds(self, limits: LimitsConfig) -> float:
        """Say how long one turn of this agent may take, in seconds (F204)."""
        config = self.config
        # By their names: those of servers and skills come and go.
        has_tools = self.tools or config.tools or config.skills or self.colleagues
        rounds = config.max_tool_rounds if has_tools else 1
        scale = min(max(rounds, 1), limits.turn_timeout_scale)
        longest = max(limits.longest_turn, limits.turn_timeout)
        return min(limits.turn_timeout * scale, longest)
