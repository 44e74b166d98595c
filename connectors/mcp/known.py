"""A server as agents' tools need it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from actors.rules import tool_names

if TYPE_CHECKING:
    from connectors.config_tools import McpServerConfig


@dataclass(frozen=True)
class Known:
    """A server as an agent's tools need it."""

    name: str
    config: McpServerConfig
    actor: str
    """The name of its actor."""

    @property
    def prefix(self) -> str:
        """What its tools' names begin with."""
        return self.config.prefix or prefix_of(self.name)


def prefix_of(name: str) -> str:
    """Make a prefix of a server's name."""
    fit = tool_names.UNFIT.sub("-", name)[: tool_names.LONGEST_PREFIX]
    while tool_names.JOINT in fit:
        fit = fit.replace(tool_names.JOINT, "_")
    return fit.strip("_-") or "server"
