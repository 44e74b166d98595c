"""The checks of a web channel, one by one: why an agent hears nothing there (F350).

As ElizaOS makes them: does the agent run, is it in the channel, does it hear its
server, is what was sent a message at all. Here the channel decides that before any
rule, and `hearing.py` is asked, so that what is told is what happens. Read from the
settings and the database; what only a running server knows is called so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from connectors.web.eliza.hearing import Heard, heard
from connectors.web.eliza.ids import ZERO, AgentIds, is_uuid, to_uuid
from connectors.web.eliza.shapes import AGENT_SOURCE, Channel, Message, Server
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from runtime.entries import StoredEntry

CHANNELS, SERVERS = "web_channel", "web_server"
SERVER_KNOWS = "server knows"
API = "/api/messaging"

T = TypeVar("T")


class Check(msgspec.Struct, frozen=True):
    """What one check says."""

    check: str
    """`message`, `channel`, `running`, `participant`, `subscribed` or `own`."""

    agent: str
    """Of which agent; empty: of all."""

    verdict: str
    """`yes`, `no`, or `server knows`: nobody else does."""

    why: str
    do: str = ""
    """What to do about it; empty: nothing."""


class Sent(msgspec.Struct, frozen=True):
    """A message that somebody would send to a web channel."""

    connector: str
    chat: str
    sender: str
    text: str
    is_bot: bool
    target: str
    """The agent that it names, if any."""


class Examined(msgspec.Struct, frozen=True):
    """What the checks say, and who would hear the message."""

    checks: tuple[Check, ...]
    heard: Heard | None
    """None: it is not taken, or nobody knows where it would be said."""


def examine(path: Path, sent: Sent, agents: tuple[str, ...]) -> Examined:
    """Check what somebody would send to a web channel.

    Args:
        path: of the database; there may be none.
        sent: the message.
        agents: the names of all.

    Raises:
        runtime.errors.StoreError: the database cannot be read.
    """
    checks = list(check_message(sent))
    if any(each.verdict == "no" for each in checks):
        return Examined(tuple(checks), None)
    channel, server = read_place(path, sent)
    if channel is None or server is None:
        return Examined((*checks, without_channel(sent, channel)), None)
    named = f"{channel.name or channel.id} ({channel.type})"
    checks.append(Check("channel", "", "yes", f"it is {named}"))
    ids = AgentIds(agents)
    message = Message(
        id=ZERO,
        channel=channel.id,
        server=server.id,
        author=to_uuid(sent.sender),
        content=sent.text,
        source_type=AGENT_SOURCE if sent.is_bot else "",
        metadata={"targetAgentId": sent.target} if sent.target else {},
        at=0,
    )
    for agent in agents:
        checks += check_agent(agent, message, channel, server)
    return Examined(tuple(checks), heard(message, channel, server, ids))


def check_message(sent: Sent) -> Iterator[Check]:
    """Check that it is a message, as the API does before anything else (F330)."""
    faults: list[tuple[str, str]] = []
    if not is_uuid(sent.chat):
        cure = f"take a channel's id: GET {API}/message-servers/{ZERO}/channels"
        faults.append((f"the channel {sent.chat!r} is no UUID", cure))
    if sent.sender and not is_uuid(sent.sender):
        cure = f"send author_id = {to_uuid(sent.sender)!r}, made of this name"
        faults.append((f"the author {sent.sender!r} is no UUID", cure))
    if not sent.text.strip():
        faults.append(("the content is empty", "send some words"))
    for why, cure in faults:
        yield Check("message", "", "no", f"{why}: refused with 400", cure)
    if not faults:
        yield Check("message", "", "yes", "it is complete")
    why = "what was refused, and why, stands in the server's log"
    cure = 'look for "request refused"; for keys also at `callboard audit`'
    yield Check("refusals", "", SERVER_KNOWS, why, cure)


def without_channel(sent: Sent, channel: Channel | None) -> Check:
    """Say that there is no such channel, or that its server is gone."""
    cure = f"make it: POST {API}/channels; over Socket.IO a message does"
    if channel is None:
        why = f"no channel {sent.chat} is in the database: 404 over REST"
        return Check("channel", "", "no", why, cure)
    return Check("channel", "", "no", f"its server {channel.server} is gone", cure)


def check_agent(
    agent: str, message: Message, channel: Channel, server: Server
) -> Iterator[Check]:
    """Make the checks of one agent."""
    agent_id = to_uuid(agent)
    why = "it is in the settings; whether its actor runs now, only the server knows"
    cure = "ask GET /readyz, or look at the page's tree"
    yield Check("running", agent, SERVER_KNOWS, why, cure)
    if agent_id in channel.participants:
        yield Check("participant", agent, "yes", "it is in the channel")
    else:
        why = f"it is none of the {len(channel.participants)} in the channel"
        cure = f"POST {API}/channels/{channel.id}/agents"
        cure = f'{cure} {{"agentId": "{agent_id}"}}'
        yield Check("participant", agent, "no", why, cure)
    yield check_server(agent, agent_id, server)
    if message.author == agent_id:
        why = "it wrote this itself, and hears others only"
        yield Check("own", agent, "no", why)


def check_server(agent: str, agent_id: str, server: Server) -> Check:
    """Check that an agent hears a channel's server."""
    if server.id == ZERO:
        return Check("subscribed", agent, "yes", "all agents hear the default server")
    named = f"server {server.name!r}"
    if agent_id in server.agents:
        return Check("subscribed", agent, "yes", f"it hears the {named}")
    cure = f"POST {API}/message-servers/{server.id}/agents"
    cure = f'{cure} {{"agentId": "{agent_id}"}}'
    return Check("subscribed", agent, "no", f"it does not hear the {named}", cure)


def read_place(path: Path, sent: Sent) -> tuple[Channel | None, Server | None]:
    """Read a channel and its server; None: it is not there.

    The default server need not be: it is made by the first start.
    """
    channel: Channel | None = None
    servers: dict[str, Server] = {ZERO: Server(id=ZERO, name="Default Server")}
    if not path.is_file():
        return None, None
    with survey(path) as rows:
        for row in rows.entries(CHANNELS):
            if row.id == f"{sent.connector}/{sent.chat.lower()}":
                channel = read(row, Channel)
        for row in rows.entries(SERVERS):
            server = read(row, Server)
            if server is not None and row.owner == sent.connector:
                servers[server.id] = server
    return channel, None if channel is None else servers.get(channel.server)


def read(row: StoredEntry, shape: type[T]) -> T | None:
    """Read a row; None: it cannot be read, and the server leaves it out, too."""
    try:
        return msgspec.json.decode(row.body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
