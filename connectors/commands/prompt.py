"""`callboard prompt`: what an agent's model is told, layer by layer, and why."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
import msgspec

from actors.consulting import has_any
from actors.history import SCHEMA, History
from actors.messages import Address, Inbound, Line, ModelRequest
from actors.prompting import brief_of, partners_of, window_of
from actors.rules import prompt as rules
from actors.rules import skills as skill_rules
from actors.rules import transcript
from actors.rules.asking_round import COLLABORATE_SPEC, CONSULT_SPEC
from actors.rules.briefing import SPOKEN_TO, Mode
from actors.rules.keys import session_key
from actors.rules.layers import Layer, tokens
from actors.rules.safe_tools import is_safe
from actors.rules.whole import fitted
from actors.tool_calls import DELEGATE_SPEC
from connectors.commands import config_option, find_settings, tell_problems
from connectors.commands.database import json_option
from connectors.commands.interruptible import run_interruptible
from connectors.commands.printing import say, say_json, table
from connectors.commands.remembered import Remembered, newest_chat, remembered
from connectors.commands.running import private_files, redacting
from connectors.commands.staffed import team_of
from connectors.config import TerminalConfig
from connectors.model_checks import find_zone
from connectors.office.conversations import events_of
from connectors.office.moments import when
from connectors.personas import read_persona
from connectors.sandbox.kept import territory
from connectors.sandbox.late import LateSandbox
from connectors.settings import load_app
from connectors.tool_sources import allotted, skills_of
from connectors.toolbox import make_tools
from runtime.clock import SystemClock
from runtime.sqlite_browse import browse

if TYPE_CHECKING:
    from actors.messages import ToolSpec
    from actors.persona import Persona
    from connectors.config import AppConfig
    from runtime.config import Settings

MODES = ("conversation", "collaboration", "visible", "planning", "autonomous")
HEADERS = ("LAYER", "TOKENS", "BUDGET", "FRESH", "WHY")
MEMORY_HEADERS = ("FOR", "SCOPE", "KIND", "SCORE", "TOLD", "FACT")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Which prompt is wanted."""

    agent: str
    words: str
    chat: str
    sender: str
    is_group: bool
    mode: Mode


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """All that would be sent."""

    agent: str
    mode: str
    model: str
    layers: tuple[Layer, ...]
    system: str
    summary: str
    messages: tuple[Line, ...]
    message_tokens: tuple[int, ...]
    """Of each of these (F169)."""

    tools: tuple[str, ...]
    prompt_tokens: int
    other_tokens: int
    """Of messages and tools."""

    room: int
    """Tokens that there are for the prompt."""

    memory: Remembered
    """Whose memory was read, and what it gave."""


@click.command()
@config_option
@click.argument("agent")
@click.option("--for", "words", default="", help="What somebody writes.")
@click.option("--chat", default="", metavar="CONNECTOR/CHAT", help="Where.")
@click.option(
    "--sender",
    default="",
    metavar="[CONNECTOR/]ID",
    help="Who writes it; whose memory is read.",
)
@click.option("--group", "is_group", is_flag=True, help="The chat is a group.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default=MODES[0],
    show_default=True,
    help="What the agent is asked for.",
)
@json_option
def command(  # noqa: PLR0913  one for each option
    config: Path | None,
    agent: str,
    words: str,
    chat: str,
    sender: str,
    mode: str,
    *,
    is_group: bool,
    as_json: bool,
) -> None:
    """Show what AGENT's model would be told, and why; nothing is asked or changed.

    Reads the conversation and the memory from the database, if there is one, beside a
    server that may be running on it. Without --chat the conversation is the newest one
    that --sender had in private. Servers of tools are not started, and no embedder is
    asked over the network, so what they would add is not shown.
    """
    path = find_settings(config, Path.cwd(), may_fall_back=True).path
    settings = load_app(path, os.environ)
    for warning in settings.warnings:
        tell_problems(warning, "warning: ")
    team = team_of(settings.value)
    agents = {name: each.config for name, each in team.personas.items()}
    if agent not in agents:
        text = f"there is no agent {agent!r}; known: {', '.join(agents)}"
        raise click.BadParameter(text, param_hint="AGENT")
    asked = Asked(
        agent=agent,
        words=words,
        chat=chat,
        sender=sender,
        is_group=is_group,
        mode=cast("Mode", mode),
    )
    config_of_all = msgspec.structs.replace(settings.value, agents=agents)
    settings = replace(settings, value=config_of_all)
    shown = shown_of(settings, asked, team.personas[agent])
    if as_json:
        say_json(shown)
    else:
        clean = redacting(settings).clean
        say(clean("\n".join(told(shown))))


def shown_of(settings: Settings[AppConfig], asked: Asked, persona: Persona) -> Shown:
    """Put together what would be sent."""
    config = settings.value
    agent = config.agents[asked.agent]
    zone = find_zone(agent.context.time_zone)
    now = datetime.fromtimestamp(SystemClock().wall(), zone)
    folder = agent.persona
    if folder is not None:
        persona = persona.as_read(read_persona(folder))
    inbound = inbound_of(config, asked, now.timestamp())
    specs = tuple(run_interruptible(tools_of, settings, asked.agent))
    if asked.mode in SPOKEN_TO:
        persona, left = persona.spoken_to(), config.collaboration.tools
        specs = tuple(each for each in specs if is_safe(each, left))
    specs += of_colleagues(config, persona)
    standing, notes = skills_now(config, asked)
    history = history_of(config, inbound, asked)
    seen = window_of(
        (inbound, ()), (history.lines, config.compaction.max_chars), persona
    )
    known = remembered(config, inbound, persona)
    request = ModelRequest(
        model=agent.model,
        agent=asked.agent,
        correlation_id="",
        system="",
        lines=seen.lines,
        tools=specs,
    )
    brief = msgspec.structs.replace(
        brief_of(persona, inbound, now, specs),
        standing=standing,
        notes=notes,
        memories=known.memories,
        summaries=tuple(each.text for each in history.summaries),
        left_out=seen.left_out + history.earlier,
        partners=partners_of(inbound, persona, config.collaboration),
        mode=asked.mode,
    )
    whole = fitted(brief, request, len(seen.lines))
    built, lines, others = whole.prompt, whole.request.lines, whole.others
    return Shown(
        agent=asked.agent,
        mode=asked.mode,
        model=agent.model,
        layers=built.layers,
        system=built.text,
        summary=built.summary,
        messages=lines,
        message_tokens=tuple(tokens(line.text) for line in lines),
        tools=tuple(each.name for each in specs),
        prompt_tokens=built.tokens,
        other_tokens=others,
        room=rules.tokens_for(agent.context, others),
        memory=known,
    )


def of_colleagues(config: AppConfig, persona: Persona) -> tuple[ToolSpec, ...]:
    """Describe the tools by which an agent reaches others, if there are any."""
    if not persona.colleagues:
        return ()
    may_ask = has_any(persona, config.collaboration) and config.limits.max_hops
    asking = (COLLABORATE_SPEC, CONSULT_SPEC) if may_ask else ()
    return (DELEGATE_SPEC, *asking)


def inbound_of(config: AppConfig, asked: Asked, now: float) -> Inbound:
    """Make the message that is asked about.

    Raises:
        click.BadParameter: the settings have no such connector, or two are named.
    """
    connector, _, chat = asked.chat.partition("/")
    theirs, slash, rest = asked.sender.partition("/")
    # An id may hold a slash, too: only a connector's name before it is one.
    is_whole = bool(slash) and theirs in config.connectors
    sender = rest if is_whole else asked.sender
    if is_whole and connector not in ("", theirs):
        text = f"{asked.sender!r} is no account on {connector!r}, which --chat names"
        raise click.BadParameter(text, param_hint="--sender")
    if not connector:
        connector = theirs if is_whole else next(iter(config.connectors), "")
    elif connector not in config.connectors:
        known = ", ".join(config.connectors)
        text = f"there is no connector {connector!r}; known: {known}"
        raise click.BadParameter(text, param_hint="--chat")
    account = config.connectors.get(connector)
    platform = type(account).__struct_config__.tag if account is not None else ""
    if not sender and isinstance(account, TerminalConfig):
        sender = account.user
    if not (chat or asked.is_group):
        chat = newest_chat(config, asked.agent, connector, sender)
    return Inbound(
        id="prompt",
        platform=str(platform),
        platform_id="prompt",
        address=Address(connector, chat or connector),
        sender_id=sender,
        sender_name=sender,
        text=asked.words,
        received_at=now,
        is_direct=not asked.is_group,
    )


async def tools_of(settings: Settings[AppConfig], agent: str) -> list[ToolSpec]:
    """Describe the agent's own tools; none is run."""
    config = settings.value
    land = territory(config, private_files(settings))
    sandbox = LateSandbox(config.sandbox, land, lambda _standing: None)
    async with AsyncExitStack() as stack:
        own = make_tools(config, SystemClock(), sandbox, stack)
        wanted = config.agents[agent].tools
        return [own[name].spec for name in wanted if name in own]


def skills_now(
    config: AppConfig, asked: Asked
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give what is told of skills: which there are, and those called for."""
    if not config.skills.folders:
        return (), ()
    folders = allotted(config, skills_of(config))[asked.agent]
    found = [folder.skill for folder in folders.values()]
    if not found:
        return (), ()
    most = config.skills.most_triggered
    called = skill_rules.triggered(asked.words, found, most)
    return (skill_rules.catalogue(found),), tuple(map(skill_rules.unfolded, called))


def history_of(config: AppConfig, inbound: Inbound, asked: Asked) -> History:
    """Read the conversation; an empty one if there is no database, or no such one."""
    path = Path(config.store.path)
    key = session_key(inbound, asked.agent, config.sessions.session_scope)
    history = History(key.text, config.agents[asked.agent].max_history)
    if not path.is_file():
        return history
    with browse(path) as browser:
        snapshot = browser.snapshot(key.text)
        if snapshot is not None and snapshot.schema == SCHEMA:
            history.restore(snapshot.sequence, snapshot.body)
        for event in events_of(browser, key.text):
            if event.stream == key.text and event.sequence > history.version:
                history.replay(event.sequence, event.kind, event.body, event.at)
    return history


def told(shown: Shown) -> list[str]:
    """Write it down for people."""
    rows = [
        (
            layer.name,
            layer.tokens,
            "" if layer.budget is None else layer.budget,
            "yes" if layer.is_fresh else "",
            layer.why,
        )
        for layer in shown.layers
    ]
    lines = [
        (
            f"{shown.agent}, {shown.mode}, model {shown.model}:"
            f" {shown.prompt_tokens:,} tokens of prompt (room for {shown.room:,}),"
            f" {shown.other_tokens:,} of {len(shown.messages)} messages and"
            f" {len(shown.tools)} tools"
        ),
        "",
        *table(HEADERS, rows),
        *told_of_memory(shown.memory),
    ]
    for layer in shown.layers:
        if layer.text:
            lines += ["", f"--- {layer.name}", layer.text]
    return [*lines, "", "--- messages", transcript.flat(shown.messages)]


def told_of_memory(memory: Remembered) -> list[str]:
    """Say whose memory was read, and what it gave."""
    lines: list[str] = []
    if memory.accounts:
        also = ", ".join(memory.accounts[1:])
        lines += ["", f"memory of {memory.person}" + (f", also {also}" if also else "")]
    if memory.scopes:
        lines.append(f"read: {', '.join(memory.scopes)}")
    if memory.missed:
        lines.append(f"not all of it: {memory.missed}")
    rows = [
        (
            fact.layer,
            fact.scope,
            fact.category or fact.kind,
            f"{fact.score:.2f}",
            when(fact.told_at),
            fact.text,
        )
        for fact in memory.facts
    ]
    return [*lines, *(table(MEMORY_HEADERS, rows) if rows else ())]
