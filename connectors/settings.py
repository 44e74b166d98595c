"""Reads the settings file, and checks what must fit together in it.

`config.py` says what each setting may be; here are the rules between them: names
that one table uses and another defines, files that must exist, doors that must
not stand open. Each complaint names its place.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, cast

from actors.rules.safe_tools import OF_COLLEAGUES
from actors.rules.skills import USE_SKILL
from actors.rules.tool_names import JOINT, SERVER
from connectors.access_checks import check_access
from connectors.address_checks import check_addresses
from connectors.busy_checks import check_busy
from connectors.config import (
    AppConfig,
    HttpConfig,
    TerminalConfig,
)
from connectors.group_checks import (
    check_collaboration,
    check_groups,
    check_routes,
    unknown_pattern,
)
from connectors.hiring import check_hiring
from connectors.hook_checks import check_hooks
from connectors.memory_config import HASHING, OFF
from connectors.model_checks import (
    Way,
    check_budgets,
    check_models,
    check_routing,
    check_sessions,
    find_zone,
    unknown,
)
from connectors.notebook import check_notebook
from connectors.page_checks import check_page
from connectors.page_config import PageConfig
from connectors.people_checks import check_embedders, check_log_folder, check_people
from connectors.personas import FILES, read_persona, unknown_files
from connectors.platform_checks import PLATFORMS, check_platforms
from connectors.quiet_checks import check_quiet
from connectors.servers_file import with_servers_file
from connectors.standing import check_autonomous
from connectors.tool_checks import (
    check_fetch,
    check_readable,
    check_web_search,
    check_workspace,
)
from connectors.web_checks import check_door, check_web
from connectors.web_config import WebConfig
from connectors.webhook_checks import check_webhooks
from connectors.websocket_checks import check_websockets
from runtime.config import Complaint, close_to, load
from runtime.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from actors.config import AgentConfig
    from actors.prompt_config import ContextConfig
    from runtime.config import Settings

TOOL_NAMES = (
    "calculate",
    "clock",
    "http_fetch",
    "list_files",
    "memory_search",
    "read_file",
    "run_shell",
    "save_memory",
    "send_file",
    "web_search",
    "write_file",
)
"""The tools of this release; `toolbox.py` and `tools/memory.py` make exactly these."""

AGENT_INHERITANCE = ("agent_defaults", "agents")
"""Each agent takes from the first table what its own does not say."""

FURTHER = "connectors.settings_tools"
CheckTools = Callable[[AppConfig, "Mapping[str, str]"], "Iterable[Complaint]"]
WithBrought = Callable[
    ["Settings[AppConfig]", "Mapping[str, str]"], "Settings[AppConfig]"
]


def load_app(path: Path, environment: Mapping[str, str]) -> Settings[AppConfig]:
    """Read and check a whole settings file.

    Args:
        path: the file; errors call it as it is given here.
        environment: where secrets are looked up, usually `os.environ`.

    Raises:
        runtime.errors.SettingsError: something is wrong; its `problems` tell each.
    """
    settings = load(
        path,
        AppConfig,
        environment=environment,
        inheritance=AGENT_INHERITANCE,
        prepare=with_servers_file,
        check=lambda app: (*check(app), *check_further(app, environment)),
    )
    if not (settings.value.skills.folders and settings.value.skills.servers):
        return settings
    add = cast("WithBrought", importlib.import_module(FURTHER).with_brought)
    return add(settings, environment)


def check_further(
    app: AppConfig, environment: Mapping[str, str]
) -> Iterable[Complaint]:
    """Check servers of tools and skills, whose libraries few settings need."""
    has_servers = any(
        tool.startswith(SERVER) for agent in app.agents.values() for tool in agent.tools
    )
    has_skills = any(agent.skills for agent in app.agents.values())
    if app.mcp_servers or app.skills.folders or has_servers or has_skills:
        check_tools = cast("CheckTools", importlib.import_module(FURTHER).check_tools)
        return check_tools(app, environment)
    return ()


def check(app: AppConfig) -> Iterator[Complaint]:
    """Name everything that does not go together."""
    if not app.agents:
        yield Complaint((), "there is no agent", "add a table [agents.anna]")
    if not app.connectors:
        yield Complaint(
            (), "there is no connector", 'add [connectors.terminal] kind = "terminal"'
        )
    if app.default_agent:
        way: Way = ("default_agent",)
        yield from unknown(way, "agent", app.default_agent, app.agents)
    for index, owner in enumerate(app.owners):
        yield from check_owner(("owners", index), owner, app)
    yield from check_routes(app)
    yield from check_collaboration(app)
    for name, agent in app.agents.items():
        yield from check_agent(name, agent, app)
    yield from check_consent(app)
    yield from check_hiring(app, TOOL_NAMES)
    yield from check_models(app)
    yield from check_budgets(app)
    yield from check_workspace(app)
    yield from check_sessions(app)
    yield from check_busy(app)
    yield from check_readable(app.sandbox.readable)
    yield from check_fetch(app)
    yield from check_web_search(app)
    yield from check_memory(app)
    yield from check_notebook(app)
    yield from check_people(app)
    yield from check_connectors(app)
    yield from check_access(app)
    yield from check_platforms(app)
    yield from check_web(app)
    yield from check_page(app)
    yield from check_websockets(app)
    yield from check_webhooks(app)
    yield from check_hooks(app)
    yield from check_quiet(app)


def check_consent(app: AppConfig) -> Iterator[Complaint]:
    """Check what is said of tools, and of who is asked about them."""
    approvals = app.approvals
    if approvals.timeout >= app.limits.turn_timeout:
        text = f"a turn is over after {app.limits.turn_timeout:g} s, before the answer"
        hint = "make it shorter than limits.turn_timeout"
        yield Complaint(("approvals", "timeout"), text, hint)
    if approvals.approval_chat:
        connector, _, chat = approvals.approval_chat.partition("/")
        way: Way = ("approvals", "approval_chat")
        if not chat:
            yield Complaint(way, "names no chat", "write connector/chat")
        elif isinstance(app.connectors.get(connector), HttpConfig):
            text = "nobody can be asked over HTTP: calls that need leave are denied"
            hint = "name a chat that people look at"
            yield Complaint(way, text, hint, is_warning=True)
        else:
            yield from unknown(way, "connector", connector, app.connectors)
    yield from check_tool_patterns(app)
    for index, table in enumerate(app.permissions):
        way = ("permissions", index)
        yield from unknown_pattern((*way, "connector"), table.connector, app)
        if not any(fnmatchcase(name, table.agent) for name in app.agents):
            text = f"no agent fits {table.agent!r}"
            hint = close_to(table.agent, app.agents)
            yield Complaint((*way, "agent"), text, hint)


def check_tool_patterns(app: AppConfig) -> Iterator[Complaint]:
    """Warn of patterns that fit no tool: a slip in what is denied is a hole."""
    places: list[tuple[Way, str]] = [
        (("agents", name, "tool_permissions"), pattern)
        for name, agent in app.agents.items()
        for pattern in agent.tool_permissions
    ]
    places += [
        (("permissions", index, field), pattern)
        for index, table in enumerate(app.permissions)
        for field in ("deny", "ask", "allow")
        for pattern in cast("tuple[str, ...]", getattr(table, field))
    ]
    known = (*TOOL_NAMES, *OF_COLLEAGUES, USE_SKILL)
    for way, pattern in places:
        # Tools of servers are named <server>__<tool>; only the servers know them.
        if JOINT not in pattern and not any(fnmatchcase(n, pattern) for n in known):
            text = f"no tool fits {pattern!r}"
            yield Complaint(way, text, close_to(pattern, known), is_warning=True)


def check_owner(way: Way, owner: str, app: AppConfig) -> Iterator[Complaint]:
    """Complain of an owner who can never write."""
    connector, _, sender = owner.partition("/")
    if not sender:
        text = f"{owner!r} is nobody: write connector/sender id"
        yield Complaint(way, text, 'for example "http/sam"')
    else:
        yield from unknown(way, "connector", connector, app.connectors)


def check_agent(name: str, agent: AgentConfig, app: AppConfig) -> Iterator[Complaint]:
    """Check what one agent refers to."""
    way: Way = ("agents", name)
    yield from unknown((*way, "model"), "model", agent.model, app.models)
    yield from check_routing((*way, "routing"), agent.routing, app)
    yield from check_groups((*way, "groups"), agent.groups, app)
    yield from check_autonomous((*way, "autonomous"), agent, app)
    for index, tool in enumerate(agent.tools):
        place = (*way, "tools", index)
        if not tool.startswith(SERVER):
            yield from unknown(place, "tool", tool, TOOL_NAMES)
        if tool == "web_search" and app.web_search.kind == "off":
            text = "there is no search engine for the tool 'web_search'"
            yield Complaint(place, text, 'set kind under [web_search], as in "searxng"')
    for index, other in enumerate(agent.delegates):
        place = (*way, "delegates", index)
        if other == name:
            text = f"agent {name!r} cannot hand work to itself"
            yield Complaint(place, text, "take it out of the list")
        else:
            others = [each for each in app.agents if each != name]
            yield from unknown(place, "agent", other, others)
    if agent.persona is not None:
        beat = agent.heartbeat
        read = (beat.file,) if beat.chat else ()
        yield from check_persona((*way, "persona"), agent.persona, read)
    yield from check_context((*way, "context"), agent.context)
    if agent.persona is None and not agent.prompt.strip():
        text = "this agent is told nothing about itself"
        yield Complaint(way, text, "give it prompt or persona", is_warning=True)


def check_context(way: Way, context: ContextConfig) -> Iterator[Complaint]:
    """Check what an agent's prompt is made by."""
    if find_zone(context.time_zone) is None:
        text = f"this machine knows no time zone {context.time_zone!r}"
        hint = 'for example "UTC" or "Europe/Berlin"'
        yield Complaint((*way, "time_zone"), text, hint)


def check_persona(
    way: Way, folder: Path, read: tuple[str, ...] = ()
) -> Iterator[Complaint]:
    """Check that a persona's folder can be read.

    Args:
        way: of the setting.
        folder: the folder.
        read: further files of it that somebody reads.
    """
    if not any(folder.glob("*.md")):
        text = f"there is no folder {folder} with .md files in it"
        hint = "the path starts at the folder of the settings file"
        yield Complaint(way, text, hint)
    try:
        read_persona(folder)
    except SettingsError as error:
        yield Complaint(way, str(error), error.hint)
    for name in sorted({*unknown_files(folder)}.difference(read)):
        text = f"{folder / name} is read by nobody"
        yield Complaint(way, text, close_to(name, FILES.values()), is_warning=True)


def check_memory(app: AppConfig) -> Iterator[Complaint]:
    """Check who makes vectors, and that those who search a memory have one."""
    known = {HASHING, OFF, *app.embedders}
    way: Way = ("memory", "embedder")
    yield from unknown(way, "embedder", app.memory.embedder, known)
    yield from check_embedders(app)
    yield from check_log_folder(app.memory.folder)
    if not app.memory.enabled:
        for name, agent in app.agents.items():
            for tool in {"memory_search", "save_memory"} & set(agent.tools):
                place: Way = ("agents", name, "tools", agent.tools.index(tool))
                text = f"there is no memory for the tool {tool!r}"
                yield Complaint(place, text, "set enabled = true under [memory]")


def check_connectors(app: AppConfig) -> Iterator[Complaint]:
    """Check that no door stands open, and that somebody answers at each."""
    way: Way
    terminals = [
        name
        for name, each in app.connectors.items()
        if isinstance(each, TerminalConfig)
    ]
    for name in terminals[1:]:
        text = f"there is one terminal, and {terminals[0]!r} has it"
        yield Complaint(("connectors", name), text, "take one of the two out")
    yield from check_addresses(app)
    for name in app.presence.connectors:
        way = ("presence", "connectors", name)
        yield from unknown(way, "connector", name, app.connectors)
    for name, connector in app.connectors.items():
        way = ("connectors", name)
        if isinstance(connector, HttpConfig | WebConfig):
            # Over HTTP each request names its agent, or its channel.
            yield from check_door(way, connector)
        elif isinstance(connector, (*PLATFORMS, PageConfig)):
            pass  # each account is an agent's, and each chat on the page
        elif not app.default_agent and not any(
            fnmatchcase(name, route.connector) for route in app.routes
        ):
            hint = "set default_agent at the top, or add a route"
            yield Complaint(way, "nobody answers here", hint, is_warning=True)
