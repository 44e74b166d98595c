"""`callboard route explain`: who would hear a message, and which rules say so."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from actors.messages import Address, Inbound, Quoted
from actors.rules.activation import Situation
from actors.rules.admission import Admit, admit
from actors.rules.agent_access import agent_access
from actors.rules.explaining import Explained, Step, explain
from actors.rules.windows import KIND, key_of, place_of
from connectors.access_checks import approvers
from connectors.commands import config_option, find_settings, tell_problems
from connectors.commands.database import json_option
from connectors.commands.pairing_explain import is_let_in, policy_of, said
from connectors.commands.printing import say, say_json, table
from connectors.commands.route_checks import Check, Examined, Sent, examine
from connectors.commands.staffed import team_of
from connectors.settings import load_app
from connectors.web.eliza.ids import to_uuid
from connectors.web_config import WebConfig
from runtime.clock import SystemClock
from runtime.sqlite_survey import survey

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from connectors.config import AppConfig

HEADERS = ("AGENT", "RULE", "VERDICT", "WHY")
CHECKS = ("CHECK", "AGENT", "VERDICT", "WHY", "TO DO")
NAMES = "NAME,…"
NOT_SAID = "nobody hears it: it is not said; see the checks"
NOBODY = "nobody hears it: no agent is in this channel; see the checks"
SOMEBODY = "somebody"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
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


class Told(msgspec.Struct, frozen=True):
    """All that is told."""

    steps: tuple[Step, ...]
    outcome: tuple[str, ...]
    checks: tuple[Check, ...] = ()
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
    "--sender", default="", metavar="ID", help="Who writes it; else whoever may."
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
@json_option
def explain_route(config: Path | None, *, as_json: bool, **asked: object) -> None:
    """Tell who would hear TEXT, each rule's verdict in order; nothing is sent.

    By the settings and, for reply windows, the database, if there is one. Whether a
    model would say that words are meant for an agent is not asked. In a channel of
    the web (ElizaOS API) the channel itself says who is there: its checks are told.
    """
    path = find_settings(config, Path.cwd(), may_fall_back=True).path
    settings = load_app(path, os.environ)
    for warning in settings.warnings:
        tell_problems(warning, "warning: ")
    found = explained(settings.value, msgspec.convert(asked, Asked))
    if as_json:
        say_json(found)
        return
    rows = [(x.agent, x.rule, x.verdict, x.why) for x in found.steps]
    checks = [(x.check, x.agent, x.verdict, x.why, x.do) for x in found.checks]
    shown = [*table(CHECKS, checks), ""] if checks else []
    for line in (*table(HEADERS, rows), "", *shown, *found.outcome):
        say(line)


def explained(config: AppConfig, asked: Asked) -> Told:
    """Tell who would hear a message.

    Raises:
        click.BadParameter: there is no such connector, or agent.
    """
    routes = team_of(config).table
    known = tuple(routes.agents.values())
    replied = (asked.reply_to,) if asked.reply_to else ()
    asked = msgspec.structs.replace(
        asked,
        present=as_known("--present", asked.present, routes.agents),
        mentions=as_known("--mention", asked.mentions, routes.agents),
        reply_to="".join(as_known("--reply-to", replied, routes.agents)),
    )
    asked, looked = in_channel(config, asked, known)
    now = SystemClock().wall()
    inbound = inbound_of(config, asked, now)
    situation = Situation(now=now, answered_at=windows_of(config, inbound, known))
    access = agent_access(config.access, approvers(config))
    found = explain(inbound, routes, situation, access)
    if asked.sender:
        found = admitted(found, config, inbound)
    if looked is None:
        return Told(found.steps, found.outcome)
    lines = found.outcome if looked.heard is not None else (NOT_SAID,)
    if looked.heard is not None and not looked.heard.present:
        lines = (NOBODY,)
    return Told(found.steps, lines, looked.checks)


def in_channel(
    config: AppConfig, asked: Asked, agents: tuple[str, ...]
) -> tuple[Asked, Examined | None]:
    """Say who is in a web channel, as the channel does; others' chats are as asked."""
    connector, _, chat = asked.chat.partition("/")
    if not chat or not isinstance(config.connectors.get(connector), WebConfig):
        return asked, None
    target = next(iter(asked.mentions), "")
    sender = asked.sender or to_uuid(SOMEBODY)
    sent = Sent(connector, chat, sender, asked.text, asked.is_bot, target)
    looked = examine(Path(config.store.path), sent, agents)
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


def as_known(
    option: str, named: tuple[str, ...], agents: Mapping[str, str]
) -> tuple[str, ...]:
    """Give agents as the settings write them, however somebody did.

    Args:
        option: where they were named.
        named: how.
        agents: as they are written, by their names in small letters.

    Raises:
        click.BadParameter: there is one of no agent.
    """
    there = tuple(agents.get(name.casefold(), name) for name in named)
    refuse_unknown(option, "agent", there, tuple(agents.values()))
    return there


def admitted(found: Explained, config: AppConfig, inbound: Inbound) -> Explained:
    """Tell first whether whoever writes may write at all: else nobody hears it."""
    rules = policy_of(config, inbound.address.connector)
    if rules is None:
        return found  # its edge knows its people
    account = f"{inbound.address.connector}/{inbound.sender_id}"
    is_paired = is_let_in(Path(config.store.path), account)
    decision = admit(inbound, rules, is_paired=is_paired)
    outcome, reason = said(decision)
    is_in = isinstance(decision, Admit)
    step = Step("", "admission", "yes" if is_in else "no", f"{outcome} ({reason})")
    why = f"nobody hears it: {account} is {outcome} ({reason})"
    hint = "see `callboard pairing explain`"
    lines = found.outcome if is_in else (f"{why}; {hint}",)
    return Explained((step, *found.steps), lines)


def refuse_unknown(
    option: str, noun: str, named: Collection[str], known: Collection[str]
) -> None:
    """Complain of a name that nothing has.

    Raises:
        click.BadParameter: there is one.
    """
    for name in named:
        if name not in known:
            text = f"there is no {noun} {name!r}; known: {', '.join(known)}"
            raise click.BadParameter(text, param_hint=option)


def inbound_of(config: AppConfig, asked: Asked, now: float) -> Inbound:
    """Make the message.

    Raises:
        click.BadParameter: there is no such connector, or no chat is named.
    """
    connector, _, chat = asked.chat.partition("/")
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
    path = Path(config.store.path)
    if inbound.is_direct or not path.is_file():
        return {}
    wanted = {key_of(agent, place_of(inbound)).text: agent for agent in agents}
    with survey(path) as rows:
        return {
            wanted[row.id]: row.at for row in rows.entries(KIND) if row.id in wanted
        }
