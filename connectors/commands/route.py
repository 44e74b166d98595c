"""`callboard route explain`: who would hear a message, and which rules say so.

In a web channel, the channel decides before any rule does. `examine` makes the checks
of ElizaOS one by one: does the agent run, is it in the channel, does it hear the
channel's server, is the text a message at all. It asks `actors/inbound/hearing.py`, as
the channel itself does. The settings and the database answer; the result of a check
that only a running server can make is `server knows`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import click
import msgspec

from actors.commands.registry import group_command
from actors.messages.inbound import Address, Inbound, Quoted
from actors.people.access import Admit, admit
from actors.rules.groups.access import agent_access
from actors.rules.groups.activation import Situation
from actors.rules.groups.explain import RouteExplanation, RuleStep, explain
from actors.rules.groups.reply_windows import KIND, key_of, place_of
from connectors.commands import config_option
from connectors.commands.common.database import database_of, load_settings
from connectors.commands.common.output import (
    rows_options,
    say,
    say_json,
    split_chat,
    table,
)
from connectors.commands.common.staff import team_of
from connectors.commands.pairing import is_let_in, policy_of, said
from connectors.config.app import AppConfig
from connectors.settings.checks.access import approvers
from connectors.web.eliza.messages import (
    AGENT_SOURCE,
    ZERO,
    AgentIds,
    ElizaChannel,
    ElizaMessage,
    ElizaServer,
    is_uuid,
    to_uuid,
)
from connectors.web.eliza.platform import WebConfig
from connectors.web.eliza.services.messages import Hearers, hearers_of
from runtime.clock import SystemClock
from runtime.store.database import Database
from runtime.store.rows import decoded

CHANNELS, SERVERS = "web_channel", "web_server"
SERVER_KNOWS = "server knows"
API = "/api/messaging"


class ChannelCheck(msgspec.Struct, frozen=True):
    """The result of one check."""

    check: str
    """`message`, `channel`, `running`, `participant`, `subscribed` or `own`."""

    agent: str
    """Of which agent; empty: of all."""

    verdict: str
    """`yes`, `no`, or `server knows`: nobody else does."""

    why: str
    do: str = ""
    """What to do about it; empty: nothing."""


class ChannelMessage(msgspec.Struct, frozen=True):
    """A message that somebody would send to a web channel."""

    connector: str
    chat: str
    sender: str
    text: str
    is_bot: bool
    target: str
    """The agent that it names, if any."""


class ChannelReport(msgspec.Struct, frozen=True):
    """The results of all checks, and who would hear the message."""

    checks: tuple[ChannelCheck, ...]
    heard: Hearers | None
    """None: it is not taken, or nobody knows where it would be said."""


def examine(
    database: Database, sent: ChannelMessage, agents: Mapping[str, str]
) -> ChannelReport:
    """Check what somebody would send to a web channel.

    Args:
        database: there may be none.
        agents: what people call each of them, by name.

    Raises:
        runtime.errors.StoreError: the database cannot be read.
    """
    checks = list(check_message(sent))
    if any(each.verdict == "no" for each in checks):
        return ChannelReport(tuple(checks), None)
    channel, server = read_place(database, sent)
    if channel is None or server is None:
        return ChannelReport((*checks, without_channel(sent, channel)), None)
    named = f"{channel.name or channel.id} ({channel.type})"
    checks.append(ChannelCheck("channel", "", "yes", f"it is {named}"))
    ids = AgentIds(agents)
    message = ElizaMessage(
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
        checks += check_agent(agent, ids.id(agent), message, (channel, server))
    return ChannelReport(tuple(checks), hearers_of(message, channel, server, ids))


def check_message(sent: ChannelMessage) -> Iterator[ChannelCheck]:
    """Check that it is a message, as the API does before anything else."""
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
        yield ChannelCheck("message", "", "no", f"{why}: refused with 400", cure)
    if not faults:
        yield ChannelCheck("message", "", "yes", "it is complete")
    why = "what was refused, and why, stands in the server's log"
    cure = 'look for "request refused"; for keys also at `callboard audit`'
    yield ChannelCheck("refusals", "", SERVER_KNOWS, why, cure)


def without_channel(sent: ChannelMessage, channel: ElizaChannel | None) -> ChannelCheck:
    """Say that there is no such channel, or that its server is gone."""
    cure = f"make it: POST {API}/channels; over Socket.IO a message does"
    if channel is None:
        why = f"no channel {sent.chat} is in the database: 404 over REST"
        return ChannelCheck("channel", "", "no", why, cure)
    return ChannelCheck(
        "channel", "", "no", f"its server {channel.server} is gone", cure
    )


def check_agent(
    agent: str,
    agent_id: str,
    message: ElizaMessage,
    place: tuple[ElizaChannel, ElizaServer],
) -> Iterator[ChannelCheck]:
    """Make the checks of one agent."""
    channel, server = place
    why = "it is in the settings; whether its actor runs now, only the server knows"
    cure = "ask GET /readyz, or look at the page's tree"
    yield ChannelCheck("running", agent, SERVER_KNOWS, why, cure)
    if agent_id in channel.participants:
        yield ChannelCheck("participant", agent, "yes", "it is in the channel")
    else:
        why = f"it is none of the {len(channel.participants)} in the channel"
        cure = f"POST {API}/channels/{channel.id}/agents"
        cure = f'{cure} {{"agentId": "{agent_id}"}}'
        yield ChannelCheck("participant", agent, "no", why, cure)
    yield check_server(agent, agent_id, server)
    if message.author == agent_id:
        why = "it wrote this itself, and hears others only"
        yield ChannelCheck("own", agent, "no", why)


def check_server(agent: str, agent_id: str, server: ElizaServer) -> ChannelCheck:
    """Check that an agent hears a channel's server."""
    if server.id == ZERO:
        return ChannelCheck(
            "subscribed", agent, "yes", "all agents hear the default server"
        )
    named = f"server {server.name!r}"
    if agent_id in server.agents:
        return ChannelCheck("subscribed", agent, "yes", f"it hears the {named}")
    cure = f"POST {API}/message-servers/{server.id}/agents"
    cure = f'{cure} {{"agentId": "{agent_id}"}}'
    return ChannelCheck(
        "subscribed", agent, "no", f"it does not hear the {named}", cure
    )


def read_place(
    database: Database, sent: ChannelMessage
) -> tuple[ElizaChannel | None, ElizaServer | None]:
    """Read a channel and its server; None: it is not there.

    The default server need not be: it is made by the first start.
    """
    channel: ElizaChannel | None = None
    servers: dict[str, ElizaServer] = {
        ZERO: ElizaServer(id=ZERO, name="Default Server")
    }
    if not database.exists():
        return None, None
    with database.inspect() as rows:
        for row in rows.entries(CHANNELS):
            if row.id == f"{sent.connector}/{sent.chat.lower()}":
                channel = decoded(row, ElizaChannel)
        for row in rows.entries(SERVERS):
            server = decoded(row, ElizaServer)
            if server is not None and row.owner == sent.connector:
                servers[server.id] = server
    return channel, None if channel is None else servers.get(channel.server)


HEADERS = ("AGENT", "RULE", "VERDICT", "WHY")
CHECKS = ("CHECK", "AGENT", "VERDICT", "WHY", "TO DO")
NAMES = "NAME,…"
NOT_SAID = "nobody hears it: it is not said; see the checks"
NOBODY = "nobody hears it: no agent is in this channel; see the checks"
SOMEBODY = "somebody"


class RouteQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The message that is asked about."""

    text: str
    chat: str
    thread: str
    sender: str
    """Empty: somebody who may write."""

    is_group: bool
    is_bot: bool
    present: tuple[str, ...]
    mentions: tuple[str, ...]
    roles: tuple[str, ...]
    reply_to: str
    agent: str = ""
    """Whom the channel says it is for."""


class RouteReport(msgspec.Struct, frozen=True):
    """Everything that is told about a message."""

    steps: tuple[RuleStep, ...]
    outcome: tuple[str, ...]
    checks: tuple[ChannelCheck, ...] = ()
    """Of a web channel: why an agent may hear nothing there."""


def names_of(_: click.Context, __: click.Parameter, value: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    return tuple(each.strip() for each in value.split(",") if each.strip())


@click.group()
def command() -> None:
    """Tell who would hear a message, and why."""


@command.command("explain")
@config_option
@click.argument("text")
@click.option("--chat", required=True, metavar="CONNECTOR/CHAT", help="Where.")
@click.option("--thread", default="", metavar="ID", help="In which thread of it.")
@click.option(
    "--sender",
    default="",
    metavar="[CONNECTOR/]ID",
    help="Who writes it; else whoever may.",
)
@click.option("--roles", default="", metavar=NAMES, callback=names_of, help="As what.")
@click.option("--group/--direct", "is_group", default=False, help="Kind of the chat.")
@click.option("--bot", "is_bot", is_flag=True, help="A program writes it.")
@click.option(
    "--present", default="", metavar=NAMES, callback=names_of, help="Agents there."
)
@click.option(
    "--mention",
    "mentions",
    default="",
    metavar=NAMES,
    callback=names_of,
    help="Agents that the platform says are mentioned, beside @name in the text.",
)
@click.option("--reply-to", default="", metavar="AGENT", help="Whom it replies to.")
@rows_options
def explain_route(config: Path | None, *, as_json: bool, **asked: object) -> None:
    """Tell who would hear TEXT, each rule's verdict in order; nothing is sent.

    By the settings and, for reply windows, the database, if there is one. Whether a
    model would say that words are meant for an agent is not asked. In a channel of
    the web (ElizaOS API) the channel itself says who is there: its checks are told.
    """
    settings = load_settings(config, may_fall_back=True)
    found = explained(settings.value, msgspec.convert(asked, RouteQuestion))
    if as_json:
        say_json(found)
        return
    rows = [(x.agent, x.rule, x.verdict, x.why) for x in found.steps]
    checks = [(x.check, x.agent, x.verdict, x.why, x.do) for x in found.checks]
    shown = [*table(CHECKS, checks), ""] if checks else []
    for line in (*table(HEADERS, rows), "", *shown, *found.outcome):
        say(line)


def explained(config: AppConfig, asked: RouteQuestion) -> RouteReport:
    """Tell who would hear a message.

    Raises:
        click.BadParameter: there is no such connector, or agent, or the sender writes
            on another connector than that of the chat.
    """
    routes = team_of(config).table
    known = tuple(routes.agents.values())
    replied = (asked.reply_to,) if asked.reply_to else ()
    asked = msgspec.structs.replace(
        asked,
        sender=sender_id(config, asked),
        present=as_known("--present", asked.present, routes.agents),
        mentions=as_known("--mention", asked.mentions, routes.agents),
        reply_to="".join(as_known("--reply-to", replied, routes.agents)),
    )
    shown = {name: routes.shown(name) for name in known}
    asked, looked = in_channel(config, asked, shown)
    now = SystemClock().wall()
    inbound = inbound_of(config, asked, now)
    situation = Situation(
        now=now,
        answered_at=windows_of(config, inbound, known),
        command=group_command(inbound),
    )
    access = agent_access(config.access, approvers(config))
    found = explain(inbound, routes, situation, access)
    if asked.sender:
        found = admitted(found, config, inbound)
    if looked is None:
        return RouteReport(found.steps, found.outcome)
    lines = found.outcome if looked.heard is not None else (NOT_SAID,)
    if looked.heard is not None and not looked.heard.present:
        lines = (NOBODY,)
    return RouteReport(found.steps, lines, looked.checks)


def in_channel(
    config: AppConfig, asked: RouteQuestion, agents: Mapping[str, str]
) -> tuple[RouteQuestion, ChannelReport | None]:
    """Say who is in a web channel, as the channel does; others' chats are as asked."""
    connector, chat = split_chat(asked.chat)
    if not chat or not isinstance(config.connectors.get(connector), WebConfig):
        return asked, None
    target = next(iter(asked.mentions), "")
    sender = asked.sender or to_uuid(SOMEBODY)
    sent = ChannelMessage(connector, chat, sender, asked.text, asked.is_bot, target)
    looked = examine(database_of(config), sent, agents)
    if looked.heard is None:
        return asked, looked
    there = msgspec.structs.replace(
        asked,
        present=looked.heard.present,
        mentions=looked.heard.mentions,
        agent=looked.heard.agent,
        is_group=not looked.heard.is_direct,
        is_bot=looked.heard.is_bot,
    )
    return there, looked


def sender_id(config: AppConfig, asked: RouteQuestion) -> str:
    """Give the sender's id on the chat's connector, also of a whole account.

    Raises:
        click.BadParameter: the account is on another connector.
    """
    theirs, slash, rest = asked.sender.partition("/")
    # An id may hold a slash, too: only a connector's name before it is one.
    if not (slash and theirs in config.connectors):
        return asked.sender
    connector, _ = split_chat(asked.chat)
    if theirs != connector:
        text = f"{asked.sender!r} is no account on {connector!r}, which --chat names"
        raise click.BadParameter(text, param_hint="--sender")
    return rest


def as_known(
    option: str, named: tuple[str, ...], agents: Mapping[str, str]
) -> tuple[str, ...]:
    """Give agents as the settings write them, however somebody did.

    Args:
        agents: as they are written, by their names in small letters.

    Raises:
        click.BadParameter: there is one of no agent.
    """
    there = tuple(agents.get(name.casefold(), name) for name in named)
    refuse_unknown(option, "agent", there, tuple(agents.values()))
    return there


def admitted(
    found: RouteExplanation, config: AppConfig, inbound: Inbound
) -> RouteExplanation:
    """Put the admission of the sender first: a refused one is heard by nobody."""
    rules = policy_of(config, inbound.address.connector)
    if rules is None:
        return found  # its edge knows its people
    account = f"{inbound.address.connector}/{inbound.sender_id}"
    is_paired = is_let_in(database_of(config), account)
    decision = admit(inbound, rules, is_paired=is_paired)
    outcome, reason = said(decision)
    is_in = isinstance(decision, Admit)
    step = RuleStep("", "admission", "yes" if is_in else "no", f"{outcome} ({reason})")
    why = f"nobody hears it: {account} is {outcome} ({reason})"
    hint = "see `callboard pairing explain`"
    lines = found.outcome if is_in else (f"{why}; {hint}",)
    return RouteExplanation((step, *found.steps), lines)


def refuse_unknown(
    option: str, noun: str, named: Collection[str], known: Collection[str]
) -> None:
    """Refuse a name that is not known.

    Raises:
        click.BadParameter: there is one.
    """
    for name in named:
        if name not in known:
            text = f"there is no {noun} {name!r}; known: {', '.join(known)}"
            raise click.BadParameter(text, param_hint=option)


def inbound_of(config: AppConfig, asked: RouteQuestion, now: float) -> Inbound:
    """Make the message.

    Raises:
        click.BadParameter: there is no such connector, or no chat is named.
    """
    connector, chat = split_chat(asked.chat)
    refuse_unknown("--chat", "connector", (connector,), tuple(config.connectors))
    if not chat:
        text = f"name the chat, too, as {connector}/CHAT"
        raise click.BadParameter(text, param_hint="--chat")
    quoted = Quoted(agent=asked.reply_to) if asked.reply_to else None
    return Inbound(
        id="explain",
        platform="",
        platform_id="explain",
        address=Address(connector, chat, asked.thread),
        sender_id=asked.sender or SOMEBODY,
        sender_name=asked.sender or SOMEBODY,
        text=asked.text,
        received_at=now,
        is_direct=not asked.is_group,
        agent=asked.agent,
        quoted=quoted,
        mentions=asked.mentions,
        present=asked.present,
        roles=asked.roles,
        is_bot=asked.is_bot,
    )


def windows_of(
    config: AppConfig, inbound: Inbound, agents: Collection[str]
) -> dict[str, float]:
    """Read when each agent last answered this person in this chat."""
    database = database_of(config)
    if inbound.is_direct or not database.exists():
        return {}
    wanted = {key_of(agent, place_of(inbound)).text: agent for agent in agents}
    with database.inspect() as rows:
        return {
            wanted[row.id]: row.at for row in rows.entries(KIND) if row.id in wanted
        }
