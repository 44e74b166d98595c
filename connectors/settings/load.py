"""Reads the settings file, and checks that its parts fit together.

`connectors/config/` says what each setting may be. Here and in `checks/` are the rules
between them: names that one table uses and another defines, files that must exist,
servers that strangers could use. Each complaint names its place.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from types import GenericAlias, UnionType
from typing import cast, get_origin

import msgspec
from msgspec.structs import fields

from actors.agents.hired import RESERVED
from actors.commands.registry import COMMANDS
from actors.config.agents import AgentConfig, is_display_name
from actors.config.prompt import ContextConfig
from actors.config.values import Name
from actors.rules.prompt.skills import USE_SKILL
from actors.rules.prompt.tools import JOINT, OF_COLLEAGUES, SERVER
from actors.rules.text.similarity import fold
from connectors.chat import platforms as registry
from connectors.chat.platforms import (
    all_retired,
    platform_in,
    platform_of,
    platforms,
    setting_of,
)
from connectors.config.app import (
    INSTALL,
    LIBRARY,
    OTEL_INSTALL,
    AdminConfig,
    AppConfig,
    ConnectorConfig,
    HttpConfig,
    NodesConfig,
    StoreConfig,
    TracingConfig,
    has_otel,
)
from connectors.config.checks import (
    Way,
    check_address,
    check_open_door,
    find_zone,
    slash_hint,
    unknown,
)
from connectors.config.mcp import with_servers_file
from connectors.config.models import HASHING, OFF
from connectors.config.shipped import state_folder
from connectors.files.notebook import check_notebook
from connectors.files.personas import FILES, read_persona, unknown_files
from connectors.settings.checks.access import (
    check_access,
    check_busy,
    check_collaboration,
    check_embedders,
    check_group_config,
    check_hiring,
    check_languages,
    check_log_folder,
    check_routes,
    unknown_pattern,
)
from connectors.settings.checks.models import (
    check_budgets,
    check_models,
    check_routing,
    check_sessions,
)
from connectors.settings.checks.schedule import check_autonomous, check_quiet
from connectors.settings.checks.tools import (
    check_fetch,
    check_hooks,
    check_readable,
    check_speech,
    check_web_search,
    check_webhooks,
    check_workspace,
)
from connectors.tools.registry import TOOLS
from runtime.config.loader import Complaint, LoadOptions, Settings, close_to, load
from runtime.config.tree import Node, assignment, inherit, variables
from runtime.errors import SettingsError

AGENT_INHERITANCE = ("agent_defaults", "agents")
"""Each agent takes from the first table what its own does not say."""

PREFIX = "CALLBOARD_"
"""How variables begin that give settings."""

FURTHER = "connectors.skills.checks"
CheckTools = Callable[[AppConfig, "Mapping[str, str]"], "Iterable[Complaint]"]
WithBrought = Callable[
    ["Settings[AppConfig]", "Mapping[str, str]"], "Settings[AppConfig]"
]


def settings_type() -> type[AppConfig]:
    """Give the Struct of a whole file, with the settings of all kinds of connectors."""
    return settings_with(registry.PACKAGES)


@cache
def settings_with(packages: tuple[str, ...]) -> type[AppConfig]:
    """Make the Struct of a whole file, with the settings of some platforms."""
    first, *others = (each.config for each in map(platform_in, packages))
    any_kind: type | UnionType = first
    for each in others:
        any_kind |= each
    empty: object = msgspec.field(default_factory=dict[str, ConnectorConfig])
    connectors = cast("type", GenericAlias(dict, (Name, any_kind)))
    whole = msgspec.defstruct(
        AppConfig.__name__,
        [("connectors", connectors, empty)],
        bases=(AppConfig,),
        namespace={"__doc__": AppConfig.__doc__},
        frozen=True,
        forbid_unknown_fields=True,
    )
    return cast("type[AppConfig]", whole)


def load_app(
    path: Path,
    environment: Mapping[str, str],
    *,
    needs_secrets: bool = True,
    given: Iterable[str] = (),
    instead: Mapping[Path, str] | None = None,
) -> Settings[AppConfig]:
    """Read and check a whole settings file.

    Args:
        path: the file; errors call it as it is given here.
        environment: where secrets are looked up, usually `os.environ`.
        needs_secrets: see `LoadOptions`; False for who only looks.
        given: settings of the command line, `log.level=debug` each.
        instead: see `LoadOptions`.

    Raises:
        runtime.errors.SettingsError: something is wrong; its `problems` tell each.
    """
    start = partial(state_folder, environment=environment)
    secrets: set[str] = set()

    def prepare(top: Node) -> Node:
        secrets.update(variables(top))
        return with_servers_file(inherit(top, *AGENT_INHERITANCE))

    settings = load(
        path,
        settings_type(),
        environment=environment,
        prepare=prepare,
        check=lambda app: (
            *check(app),
            *check_further(app, environment),
            *check_moved(app, start(path.parent.absolute())),
            *check_environment(environment.keys() - secrets),
        ),
        options=LoadOptions(
            start=start,
            overrides=overrides(environment, given),
            needs_secrets=needs_secrets,
            retired=all_retired(),
            instead=instead or {},
        ),
    )
    if not (settings.value.skills.folders and settings.value.skills.servers):
        return settings
    add = cast("WithBrought", importlib.import_module(FURTHER).with_brought)
    return add(settings, environment)


def overrides(environment: Mapping[str, str], given: Iterable[str]) -> tuple[Node, ...]:
    """Read settings that are given beside the file; the command line counts most.

    Args:
        environment: a name such as `CALLBOARD_LOG__LEVEL` gives `log.level`; one
            without two underscores in a row gives none.
        given: `log.level=debug` each.

    Raises:
        SettingsError: one of them names no setting.
    """
    found: list[Node] = []
    for name in sorted(environment):
        if name.startswith(PREFIX) and "__" in name.removeprefix(PREFIX):
            key = name.removeprefix(PREFIX).lower().replace("__", ".")
            found.append(assignment(key, environment[name], name))
    for each in given:
        key, is_given, value = each.partition("=")
        label = f"--set {key.strip()}".rstrip()
        found.append(assignment(key if is_given else "", value.strip(), label))
    return tuple(found)


def check_environment(names: Iterable[str]) -> Iterator[Complaint]:
    """Warn of variables that look as if they set a setting, and set none.

    Args:
        names: those from which no secret is taken.
    """
    for name in sorted(names):
        key = name.removeprefix(PREFIX).lower()
        if name.startswith(PREFIX) and (hint := way_to_set(key)):
            text = f"the variable {name} sets nothing"
            yield Complaint((), text, hint, is_warning=True)


def way_to_set(key: str) -> str:
    """Say how to set what a variable seems to name; empty: it names no setting."""
    if "__" in key:
        return ""
    for table in fields(settings_type()):
        kind = cast("object", table.type)
        rest = key.removeprefix(f"{table.name}_")
        if key == table.name:
            return f"set {key} in this file, or by --set '{key}=…'"
        if rest == key:
            continue
        meant = f"{table.name}__NAME__KEY" if get_origin(kind) is dict else ""
        if rest in cast("tuple[str, ...]", getattr(kind, "__struct_fields__", ())):
            meant = f"{table.name}__{rest}"
        if meant:
            return f"two underscores stand for a dot: {PREFIX}{meant.upper()}"
    return ""


def check_moved(app: AppConfig, start: Path) -> Iterator[Complaint]:
    """Warn of a database in the current folder, where paths started once."""
    database = Path(app.store.path)
    if app.store.kind != "sqlite" or not database.is_relative_to(start):
        return
    before = Path.cwd() / database.relative_to(start)
    if is_there(before) and not is_there(database):
        text = f"{database} is not there yet, but {before} is: relative paths once"
        text += " started at the current directory"
        hint = f'stop Callboard and move it, with its -wal; or set path = "{before}"'
        yield Complaint(("store", "path"), text, hint, is_warning=True)


def check_store(store: StoreConfig) -> Iterator[Complaint]:
    """Check that a database on a server has an address, and a file has none."""
    if store.kind == "postgresql" and store.dsn is None:
        hint = 'add dsn = { env = "CALLBOARD_DATABASE" }'
        yield Complaint(("store", "dsn"), "the database's address is missing", hint)
    elif store.kind == "postgresql" and importlib.util.find_spec(LIBRARY) is None:
        text = "the extra 'postgresql' is not installed"
        yield Complaint(("store", "kind"), text, INSTALL)
    elif store.kind == "sqlite" and store.dsn is not None:
        text = 'is of no use with kind = "sqlite", which keeps a file'
        hint = 'take it out, or set kind = "postgresql"'
        yield Complaint(("store", "dsn"), text, hint)


NODE_NAME = re.compile("[a-z0-9][a-z0-9-]*")


def check_nodes(app: AppConfig) -> Iterator[Complaint]:
    """Check that a company can move from one node to another."""
    if not app.nodes.name:
        if app.nodes.address:
            text = "is of no use without a name"
            yield Complaint(("nodes", "address"), text, 'name = "a", another for each')
        return
    yield from check_node(app.nodes)
    if app.store.kind != "postgresql":
        text = "several processes need a database on a server"
        yield Complaint(("nodes", "name"), text, 'set [store] kind = "postgresql"')
    if app.store.synchronous != "full":
        text = "a crash of the server could give the company to two nodes"
        hint = 'synchronous = "full"'
        yield Complaint(("store", "synchronous"), text, hint)
    shared = [x for x in app.connectors.values() if platform_of(x).shares_chats]
    if shared and not app.nodes.address:
        text = "the other nodes could not pass requests on to this one"
        yield Complaint(("nodes", "address"), text, 'for example "10.0.0.5"')
    for name, connector in app.connectors.items():
        if getattr(connector, "port", None) == 0:
            text = "the other nodes cannot know a port that is chosen at the start"
            way = ("connectors", name, "port")
            yield Complaint(way, text, "set the port")


def check_node(nodes: NodesConfig) -> Iterator[Complaint]:
    """Check the name and the address of this process."""
    if not NODE_NAME.fullmatch(nodes.name):
        text = "has other characters than a to z, 0 to 9 and -"
        yield Complaint(("nodes", "name"), text, 'for example "a", or "berlin-1"')
    if "/" in nodes.address or nodes.address.count(":") == 1:
        text = "is a host alone: each connector has its own port"
        yield Complaint(("nodes", "address"), text, 'for example "10.0.0.5"')


def check_tracing(tracing: TracingConfig) -> Iterator[Complaint]:
    """Check that traces can be sent, and where to."""
    if tracing.is_on and not has_otel():
        text = "the extra 'otel' is not installed"
        yield Complaint(("tracing", "is_on"), text, OTEL_INSTALL)
    if tracing.endpoint:
        yield from check_address(
            ("tracing", "endpoint"),
            tracing.endpoint,
            has_key=bool(tracing.headers),
            example="http://localhost:4318",
        )


def check_admin(admin: AdminConfig) -> Iterator[Complaint]:
    """Check that not everybody sees what operators see."""
    if admin.is_on:
        yield from check_open_door(
            ("admin",),
            admin.host,
            has_key=admin.api_key is not None,
            may="sees all metrics and actors",
            variable="CALLBOARD_ADMIN_KEY",
        )


def is_there(path: Path) -> bool:
    """Whether there is such a file, as far as one may look."""
    try:
        return path.exists()
    except OSError:
        return False


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
    yield from check_display_names(app)
    yield from check_consent(app)
    yield from check_commands(app)
    yield from check_hiring(app, TOOLS)
    yield from check_models(app)
    yield from check_budgets(app)
    yield from check_store(app.store)
    yield from check_nodes(app)
    yield from check_tracing(app.tracing)
    yield from check_admin(app.admin)
    yield from check_workspace(app)
    yield from check_sessions(app)
    yield from check_busy(app)
    yield from check_readable(app.sandbox.readable)
    yield from check_fetch(app)
    yield from check_web_search(app)
    yield from check_speech(app)
    yield from check_memory(app)
    yield from check_notebook(app)
    yield from check_languages(app)
    yield from check_connectors(app)
    yield from check_access(app)
    for platform in platforms():
        mine = {
            name: each
            for name, each in app.connectors.items()
            if type(each) is platform.config
        }
        yield from platform.check(mine, app)
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
            place = approvals.approval_chat
            hint = slash_hint(place, app.connectors, "write connector/chat")
            yield Complaint(way, "names no chat", hint)
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


def check_commands(app: AppConfig) -> Iterator[Complaint]:
    """Complain of unknown commands, and of those whose users are fixed."""
    known = [word for word, each in COMMANDS.items() if not each.is_fixed]
    tables = {"who": app.commands.who, "who_in_groups": app.commands.who_in_groups}
    for table, words in tables.items():
        for word in words:
            place = ("commands", table, word)
            if word in COMMANDS and word not in known:
                text = f"the settings cannot change who may use /{word}"
                yield Complaint(place, text, "take it out")
            else:
                yield from unknown(place, "command", word, known)


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
    known = (*TOOLS, *OF_COLLEAGUES, USE_SKILL)
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
        hint = slash_hint(owner, app.connectors, 'for example "http/sam"')
        yield Complaint(way, text, hint)
    else:
        yield from unknown(way, "connector", connector, app.connectors)


def check_display_names(app: AppConfig) -> Iterator[Complaint]:
    """Complain of a display name that is none, or calls somebody else already."""
    whose = {name.casefold(): name for name in app.agents}
    for name, agent in app.agents.items():
        way: Way = ("agents", name, "display_name")
        if not is_display_name(agent.display_name):
            text = "it has characters that no name may have"
            hint = "write letters with their marks, digits, blanks and . ' - _"
            yield Complaint(way, text, hint)
            continue
        shown = fold(agent.display_name)
        other = whose.setdefault(shown, name) if shown else name
        if other != name or shown in RESERVED:
            text = f"agent {other!r} is called so"
            text = "whole chats are called so" if other == name else text
            yield Complaint(way, text, "choose another name")


def check_model(way: Way, model: str, app: AppConfig) -> Iterator[Complaint]:
    """Complain of an agent's model that is not there, or that nobody has named."""
    is_named = model != AgentConfig().model
    if is_named or not app.models:
        yield from unknown(way, "model", model, app.models)
    elif model not in app.models:
        first = next(iter(app.models))
        hint = f'write model = "{first}", here or in [agent_defaults]'
        yield Complaint(way, f"it names no model, and none is called {model!r}", hint)


def check_agent(name: str, agent: AgentConfig, app: AppConfig) -> Iterator[Complaint]:
    """Check what one agent refers to."""
    way: Way = ("agents", name)
    yield from check_model((*way, "model"), agent.model, app)
    yield from check_routing((*way, "routing"), agent.routing, app)
    yield from check_group_config((*way, "groups"), agent.groups, app)
    yield from check_autonomous((*way, "autonomous"), agent, app)
    for index, tool in enumerate(agent.tools):
        place = (*way, "tools", index)
        if not tool.startswith(SERVER):
            yield from unknown(place, "tool", tool, TOOLS)
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
    """Check that a persona's folder can be read."""
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
    """Check that addresses are free, and that somebody answers at each connector."""
    yield from check_ports(app)
    for name in app.presence.connectors:
        way: Way = ("presence", "connectors", name)
        yield from unknown(way, "connector", name, app.connectors)
    for name, connector in app.connectors.items():
        has_answer = platform_of(connector).names_agent or app.default_agent
        if not has_answer and not any(
            fnmatchcase(name, route.connector) for route in app.routes
        ):
            first = next(iter(app.agents), "anna")
            hint = f'write default_agent = "{first}" at the top, or add a route'
            yield Complaint(
                ("connectors", name), "nobody answers here", hint, is_warning=True
            )


EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104  compared with, not listened on


def check_ports(app: AppConfig) -> Iterator[Complaint]:
    """Complain of each connector whose port another one, or `[admin]`, has already."""
    taken: dict[int, list[tuple[str, str]]] = {}
    if app.admin.is_on and app.admin.port:
        taken[app.admin.port] = [("admin", app.admin.host)]
    for name, connector in app.connectors.items():
        host, port = setting_of(connector, "host", ""), setting_of(connector, "port", 0)
        if not port:
            continue
        there = taken.setdefault(port, [])
        for other, its_host in there:
            if its_host == host or EVERYWHERE & {host, its_host}:
                way: Way = ("connectors", name, "port")
                text = f"{other} listens on port {port}, too"
                yield Complaint(way, text, "give one of the two another port")
                break
        there.append((f"connectors.{name}", host))
