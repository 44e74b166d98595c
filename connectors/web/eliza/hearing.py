"""Which agents hear what is said in a channel, and how; pure.

Four checks, as agents of ElizaOS make them: an agent is in the channel, its server is
one of the agent's, it is not the author, and the message is new to it (that one the
database answers).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from connectors.web.eliza.ids import ZERO
from connectors.web.eliza.shapes import AGENT_SOURCE, DIRECT

if TYPE_CHECKING:
    from connectors.web.eliza.ids import AgentIds
    from connectors.web.eliza.shapes import Channel, Message, Server


class Heard(msgspec.Struct, frozen=True):
    """Who hears one message."""

    present: tuple[str, ...]
    """Names of the agents in the channel that can hear it."""

    agent: str = ""
    """The one it is for, in a direct chat."""

    mentions: tuple[str, ...] = ()
    is_bot: bool = False

    @property
    def is_direct(self) -> bool:
        """Whether nobody but one agent is spoken to."""
        return bool(self.agent)


def heard(
    message: Message, channel: Channel, server: Server, agents: AgentIds
) -> Heard:
    """Say who hears a message."""
    inside = channel.participants
    if server.id != ZERO:
        inside = tuple(each for each in inside if each in server.agents)
    own = agents.name(message.author)
    present = tuple(each for each in agents.among(inside) if each != own)
    others = len([each for each in channel.participants if not agents.name(each)])
    is_bot = bool(own) or message.source_type == AGENT_SOURCE
    is_alone = len(present) == 1 and not own
    if is_alone and (channel.type in DIRECT or others <= 1):
        return Heard(present, agent=present[0], is_bot=is_bot)
    target = agents.name(str(message.metadata.get("targetAgentId") or ""))
    mentions = (target,) if target in present else ()
    return Heard(present, mentions=mentions, is_bot=is_bot)
