"""An agent's settings with everything looked up: its model, tools and colleagues."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from actors.ports import Model, Tool
from actors.rules.loop_guard import DelegationLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from actors.config import AgentConfig
    from actors.messages import Usage


@dataclass(frozen=True)
class Prices:
    """What a model costs, in US dollars for a million tokens."""

    input: float = 0.0
    output: float = 0.0

    def cost(self, usage: Usage) -> float:
        """Say what a use of the model costs, in US dollars."""
        spent = usage.input_tokens * self.input + usage.output_tokens * self.output
        return round(spent / 1_000_000, 8)


@dataclass(frozen=True)
class Persona:
    """Who an agent is, and what it works with."""

    name: str
    config: AgentConfig
    model: Model
    model_name: str
    """The provider's name of the model."""

    files: str = ""
    """Text of the persona's folder, in the order the prompt wants it."""

    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    """By name, only those it may use."""

    colleagues: Mapping[str, str] = field(default_factory=dict[str, str])
    """Whom it may hand work to: name and description."""

    everybody: tuple[str, ...] = ()
    """Names of all agents."""

    prices: Prices = Prices()

    def delegation_limits(self, max_hops: int) -> DelegationLimits:
        """Say what the loop guard must know of this agent."""
        return DelegationLimits(
            agents=self.everybody,
            max_hops=max_hops,
            delegates=tuple(self.colleagues),
        )
