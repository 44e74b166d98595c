"""`callboard prompt`: what an agent's model is told, layer by layer, and why.

The memories are read as a turn would read them, but the command changes nothing and
asks no actor: it reads the database directly, which does not disturb a running server.
Where a server would ask an embedder over the network, the command searches by words
alone, and its output says so.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import cast

import click
import msgspec

from actors.agents.persona import Persona
from actors.journal.history import SCHEMA, History
from actors.journal.records import CONVERSATION
from actors.memory import scopes
from actors.memory.kit import MemoryKit, MemoryMetrics
from actors.memory.messages import Recall, RecalledFacts
from actors.memory.notebook import project_text
from actors.memory.recall import FactReader
from actors.messages.inbound import (
    Address,
    Inbound,
    ModelRequest,
    ToolSpec,
    TranscriptLine,
)
from actors.messages.keys import account_of, parse_key, session_key
from actors.people import rows as people_rows
from actors.people.identity import Person
from actors.rules.markers.descriptions import SPOKEN_TO, Mode
from actors.rules.prompt import build as rules, skills as skill_rules, transcript
from actors.rules.prompt.brief import NO_MEMORIES, Memories
from actors.rules.prompt.build import Layer, tokens
from actors.rules.prompt.window import fitted
from actors.turn import tools
from actors.turn.request import brief_of, memories_of, partners_of, tasks_of, window_of
from connectors.admin.conversations import events_of
from connectors.admin.display import when
from connectors.app.kit import described_tools
from connectors.app.tool_sources import allotted, skills_of
from connectors.chat.terminal.platform import TerminalConfig
from connectors.commands import config_option
from connectors.commands.common.database import database_of, load_settings
from connectors.commands.common.output import (
    rows_options,
    say,
    say_json,
    split_chat,
    table,
)
from connectors.commands.common.running import (
    private_files,
    redacting,
    run_interruptible,
)
from connectors.commands.common.staff import colleague_tools, team_of
from connectors.config.app import AppConfig
from connectors.config.checks import find_zone
from connectors.config.models import HASHING, OFF
from connectors.files.notebook import make_notebook
from connectors.files.personas import read_persona
from connectors.models.embedders.local import HashingEmbedder
from connectors.sandbox.runner import sandbox_of
from connectors.skills.folder import places_of
from connectors.skills.source import UseSkillTool
from runtime.clock import SystemClock
from runtime.config.loader import Settings
from runtime.store.database import Database, StoreReader
from runtime.telemetry.metrics import Metrics

# Chosen: nobody waits in a chat for it, and a disk that is cold may take its time.
WITHIN = 30.0
"""Seconds that reading may take; a turn has `memory.recall_timeout`."""

ORDER = (
    "sticky",
    "relevant",
    "states",
    "profile",
    "lessons",
    "outcomes",
    "summaries",
    "logs",
)


class RecalledFact(msgspec.Struct, frozen=True, kw_only=True):
    """One recalled fact, and why it was recalled."""

    layer: str
    """For which layer; whether it is shown there, the layer says."""

    id: str
    scope: str
    kind: str
    category: str
    score: float
    """How much it has to do with the words; 1 for what is always given."""

    told_at: float
    """Unix seconds."""

    text: str


class RecalledMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The recalled memories, and whose they are."""

    memories: Memories = NO_MEMORIES
    person: str = ""
    accounts: tuple[str, ...] = ()
    """All of that person's."""

    scopes: tuple[str, ...] = ()
    """Whose memory was read."""

    facts: tuple[RecalledFact, ...] = ()
    missed: str = ""
    """Why something may be missing; empty: nothing is."""


def remembered(config: AppConfig, inbound: Inbound, persona: Persona) -> RecalledMemory:
    """Read what a turn would be reminded of before its model is asked.

    Raises:
        runtime.errors.StoreError: the database cannot be read.
    """
    database = database_of(config)
    if not database.exists():
        return RecalledMemory(missed=f"there is no database {database.name} yet")
    return run_interruptible(_read_memory, database, config, inbound, persona)


async def _read_memory(
    database: Database, config: AppConfig, inbound: Inbound, persona: Persona
) -> RecalledMemory:
    with database.reader() as store:
        person = await _person(store, inbound)
        names = scopes.reading(
            inbound.address,
            person.accounts,
            is_direct=inbound.is_direct,
            member=scopes.member_of(inbound, config.sessions.session_scope),
            person_in_groups=config.memory.person_in_groups,
        )
        recalled, missed = await _recall(store, config, (inbound, persona.name, names))
        project = await project_text(recalled.states, make_notebook(config, None))
        tasks = await tasks_of(inbound, person, persona, (store, find_zone))
        memories = memories_of(inbound, person, recalled, project=project, tasks=tasks)
    return RecalledMemory(
        memories=memories,
        person=person.id,
        accounts=person.accounts,
        scopes=names if config.memory.enabled else (),
        facts=tuple(facts_of(recalled)),
        missed=missed,
    )


async def _person(store: StoreReader, inbound: Inbound) -> Person:
    if not inbound.sender_id:
        return Person(account_of(inbound))
    return (await people_rows.read(store, account_of(inbound))).person


async def _recall(
    store: StoreReader, config: AppConfig, asked: tuple[Inbound, str, tuple[str, ...]]
) -> tuple[RecalledFacts, str]:
    """Recall facts; also say why some may be missing."""
    inbound, agent, names = asked
    if not config.memory.enabled:
        return RecalledFacts(), "memory.enabled is false"
    kit, why = _kit(config)
    recall = Recall(
        question=inbound.text, scopes=names, now=inbound.received_at, within=WITHIN
    )
    recalled, _ = await FactReader(agent, store.facts, kit).recall(recall)
    return recalled, "; ".join(filter(None, (why, recalled.missed)))


def _kit(config: AppConfig) -> tuple[MemoryKit, str]:
    """Make the parts of a recall; also say what is missing here."""
    name = config.memory.embedder
    metrics = MemoryMetrics(Metrics())
    if name == HASHING:
        embedder = HashingEmbedder()
        return MemoryKit(config.memory, metrics, embedder), ""
    why = f"searched by words only: the embedder {name!r} is not asked from here"
    return MemoryKit(config.memory, metrics), "" if name == OFF else why


def facts_of(recalled: RecalledFacts) -> list[RecalledFact]:
    """List all that was recalled, layer by layer."""
    return [
        RecalledFact(
            layer=layer,
            id=fact.id,
            scope=fact.scope,
            kind=fact.kind,
            category=fact.category,
            score=round(fact.score, 4),
            told_at=fact.created_at,
            text=fact.text,
        )
        for layer in ORDER
        for fact in getattr(recalled, layer)
    ]


def newest_chat(config: AppConfig, agent: str, connector: str, sender: str) -> str:
    """Find where somebody spoke with an agent last in private; empty: nowhere yet."""
    database = database_of(config)
    if not (sender and database.exists()):
        return ""
    with database.inspect() as rows:
        for row in rows.records(CONVERSATION):
            try:
                key = parse_key(row.id)
            except ValueError:
                continue
            if (key.agent, key.connector, key.sender) == (agent, connector, sender):
                return key.chat
    return ""


MODES = ("conversation", "collaboration", "visible", "planning", "autonomous")
HEADERS = ("LAYER", "TOKENS", "BUDGET", "FRESH", "WHY")
MEMORY_HEADERS = ("FOR", "SCOPE", "KIND", "SCORE", "TOLD", "FACT")


class PromptQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The prompt that is asked for."""

    agent: str
    words: str
    chat: str
    sender: str
    is_group: bool
    mode: Mode


class ShownPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that would be sent to the model."""

    agent: str
    mode: str
    model: str
    layers: tuple[Layer, ...]
    system: str
    summary: str
    messages: tuple[TranscriptLine, ...]
    message_tokens: tuple[int, ...]
    """Of each of these."""

    tools: tuple[str, ...]
    prompt_tokens: int
    other_tokens: int
    """Of messages and tools."""

    room: int
    """Tokens that there are for the prompt."""

    memory: RecalledMemory
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
@rows_options
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
    that --sender had in private. Servers of tools are not started, no embedder is
    asked over the network, and what others said in a group since the agent last
    answered is not read, so what these would add is not shown.
    """
    settings = load_settings(config, may_fall_back=True)
    team = team_of(settings.value)
    agents = {name: each.config for name, each in team.personas.items()}
    if agent not in agents:
        text = f"there is no agent {agent!r}; known: {', '.join(agents)}"
        raise click.BadParameter(text, param_hint="AGENT")
    asked = PromptQuestion(
        agent=agent,
        words=words,
        chat=chat,
        sender=sender,
        is_group=is_group,
        mode=cast("Mode", mode),
    )
    config_of_all = msgspec.structs.replace(settings.value, agents=agents)
    settings = msgspec.structs.replace(settings, value=config_of_all)
    shown = shown_of(settings, asked, team.personas[agent])
    if as_json:
        say_json(shown)
    else:
        clean = redacting(settings).clean
        say(clean("\n".join(told(shown))))


def shown_of(
    settings: Settings[AppConfig], asked: PromptQuestion, persona: Persona
) -> ShownPrompt:
    """Build everything that would be sent to the model."""
    config = settings.value
    agent = config.agents[asked.agent]
    zone = find_zone(agent.context.time_zone)
    now = datetime.fromtimestamp(SystemClock().wall(), zone)
    folder = agent.persona
    if folder is not None:
        persona = persona.as_read(read_persona(folder))
    inbound = inbound_of(config, asked, now.timestamp())
    if asked.mode in SPOKEN_TO:
        persona = persona.spoken_to()
    standing, notes, skill_tools = skills_now(config, asked)
    own = run_interruptible(tools_of, settings, asked.agent)
    specs = tuple(
        tool
        for tool in (*skill_tools, *own, *colleague_tools(config, persona))
        if may_use(config, tool, persona, (inbound, asked.mode))
    )
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
    return ShownPrompt(
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


def may_use(
    config: AppConfig, tool: ToolSpec, persona: Persona, asked: tuple[Inbound, Mode]
) -> bool:
    """Return whether the model is told of a tool."""
    there = config.collaboration.tools
    found = tools.judge(tool, persona, asked, config.permissions, there)
    return found.need != "deny"


def inbound_of(config: AppConfig, asked: PromptQuestion, now: float) -> Inbound:
    """Make the message that is asked about.

    Raises:
        click.BadParameter: the settings have no such connector, or two are named.
    """
    connector, chat = split_chat(asked.chat)
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
    sandbox = sandbox_of(config, private_files(settings))
    async with AsyncExitStack() as stack:
        own = described_tools(config, sandbox, stack)
        wanted = config.agents[agent].tools
        return [own[name].spec for name in wanted if name in own]


def skills_now(
    config: AppConfig, asked: PromptQuestion
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[ToolSpec, ...]]:
    """Give what is told of skills: which there are, those called for, and the tool."""
    folders = allotted(config, skills_of(config))[asked.agent]
    if not folders:
        return (), (), ()
    found = [folder.skill for folder in folders.values()]
    places = places_of(folders) if asked.agent in config.program_agents else {}
    called = skill_rules.triggered(asked.words, found, config.skills.most_triggered)
    unfolded = [
        skill_rules.unfolded(each, places.get(each.name, "")) for each in called
    ]
    tool = UseSkillTool(folders, lambda _context, _skill: None)
    return (skill_rules.catalogue(found, places),), tuple(unfolded), (tool.spec,)


def history_of(config: AppConfig, inbound: Inbound, asked: PromptQuestion) -> History:
    """Read the conversation; an empty one if there is no database, or no such one."""
    database = database_of(config)
    key = session_key(inbound, asked.agent, config.sessions.session_scope)
    history = History(key.text, config.agents[asked.agent].max_history)
    if not database.exists():
        return history
    with database.inspect() as rows:
        snapshot = rows.snapshot(key.text)
        if snapshot is not None and snapshot.schema == SCHEMA:
            history.restore(snapshot.sequence, snapshot.body)
        for event in events_of(rows, key.text):
            if event.stream == key.text and event.sequence > history.version:
                history.replay(event.sequence, event.kind, event.body, event.at)
    return history


def told(shown: ShownPrompt) -> list[str]:
    """Describe the prompt for people."""
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
            f" {shown.other_tokens:,} for messages ({len(shown.messages)}) and tools"
            f" ({len(shown.tools)})"
        ),
        "",
        *table(HEADERS, rows),
        *told_of_memory(shown.memory),
    ]
    for layer in shown.layers:
        if layer.text:
            lines += ["", f"--- {layer.name}", layer.text]
    return [*lines, "", "--- messages", transcript.flat(shown.messages)]


def told_of_memory(memory: RecalledMemory) -> list[str]:
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
