"""Checks what must fit together in the settings of servers of tools and of skills.

Also reads the interceptors and servers that skills bring along, which are settings,
too. A skill may name a program in the head of its SKILL.md, as `interceptor: python3
x.py` or as a list, at the top or in `metadata`. It is run as a hook, in the skill's
folder, which it may read, and is asked only about what agents with that skill hear.
Servers stand in the `mcp.json` of its folder, in the usual shape, or under `mcp` in the
head of its SKILL.md.

Both are programs that came with a text, so only what the operator lists in
`skills.interceptors` and `skills.servers` is run.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from actors.rules.prompt import tools as tool_names
from actors.rules.prompt.skills import SKILL_FILE
from connectors.config import mcp as servers_file
from connectors.config.app import AppConfig
from connectors.config.checks import RETIRED
from connectors.config.hooks import HookConfig
from connectors.config.mcp import McpServerConfig, ServerName
from connectors.files.notebook import is_folder
from connectors.mcp.source import prefix_of
from connectors.sandbox.plan import SYSTEM
from connectors.skills.folder import SkillFolder, read_folders
from runtime.config.loader import Complaint, LoadOptions, Settings, close_to, decode
from runtime.config.tree import Node, Origin
from runtime.errors import SettingsError
from runtime.secret import Secret

SERVERS_FILE = "mcp.json"
MOST_SERVERS = 8


class SkillServers(Struct, frozen=True, forbid_unknown_fields=True):
    """What a skill says of its servers."""

    mcp_servers: dict[ServerName, McpServerConfig] = field(name="mcpServers")


def brings_servers(folder: SkillFolder) -> bool:
    """Tell whether a skill has servers of its own."""
    return (folder.path / SERVERS_FILE).is_file() or table_of(folder) is not None


def table_of(folder: SkillFolder) -> object:
    """Give the table of servers in a skill's head; None if there is none."""
    metadata = folder.head.get("metadata")
    inner = metadata.get("mcp") if isinstance(metadata, dict) else None
    return folder.head.get("mcp", inner)


class Brings(Struct, frozen=True):
    """What a skill's servers are, and which secrets they take."""

    servers: dict[str, McpServerConfig]
    secrets: tuple[Secret, ...] = ()
    secret_files: tuple[Path, ...] = ()
    doubts: tuple[SettingsError, ...] = ()
    """What people are told of, though the servers may be started."""


def servers_of(folder: SkillFolder, environment: Mapping[str, str]) -> Brings:
    """Read a skill's servers; the names are made the skill's own.

    Raises:
        SettingsError: they are not as settings of servers are, or more than is borne.
    """
    file = str(folder.path / SERVERS_FILE)
    if (folder.path / SERVERS_FILE).is_file():
        origin = Origin(file)
        table = servers_file.read_servers(folder.path / SERVERS_FILE)
    elif (head := table_of(folder)) is not None:
        origin = Origin(str(folder.path / "SKILL.md"))
        table = servers_file.node(as_servers(head, origin), origin)
    else:
        return Brings({})
    top = Node({servers_file.SERVERS: table}, origin, origin)
    options = LoadOptions(retired=RETIRED)
    settings = decode(top, SkillServers, environment=environment, options=options)
    found = settings.value.mcp_servers
    if len(found) > MOST_SERVERS:
        raise origin.error(f"a skill may bring {MOST_SERVERS} servers at most")
    name = folder.skill.name
    servers = {f"{name}.{each}": bounded(found[each], origin) for each in found}
    return Brings(servers, settings.secrets, settings.secret_files, settings.warnings)


def as_servers(head: object, origin: Origin) -> object:
    """Take the servers of a head as a JSON file would have them."""
    if not isinstance(head, dict):
        raise origin.error("'mcp' must be a table of servers by name")
    table: dict[str, object] = dict(head)  # pyright: ignore[reportUnknownArgumentType]
    return {name: servers_file.server(each, origin) for name, each in table.items()}


def bounded(config: McpServerConfig, origin: Origin) -> McpServerConfig:
    """Take from a skill's server what only the operator may say.

    Raises:
        SettingsError: it is no program: an address is for the settings.
    """
    if config.url or not config.command:
        text = "a skill's server must be a program"
        hint = "put the address into [mcpServers] of the settings"
        raise origin.error(text, hint)
    return msgspec.structs.replace(
        config, prefix="", readable=(), writable=(), cwd=None
    )


def read_all(
    folders: Mapping[str, SkillFolder], environment: Mapping[str, str]
) -> tuple[dict[str, Brings], list[SettingsError]]:
    """Read the servers of several skills; those that are wrong are told.

    Returns:
        By skill, what it brings; and what is wrong.
    """
    found: dict[str, Brings] = {}
    problems: list[SettingsError] = []
    for name, folder in folders.items():
        try:
            found[name] = servers_of(folder, environment)
        except SettingsError as error:
            problems.append(error)
    return found, problems


KEY = "interceptor"

PREFIX = "skill."
"""Before the skill's name in its hook's; no hook of the settings has a dot."""


def interceptors_of(
    config: AppConfig,
) -> tuple[dict[str, HookConfig], list[SettingsError]]:
    """Read the programs of those skills that may have messages for themselves.

    Returns:
        Hooks by name; and what is wrong with others.
    """
    skills = read_folders(config.skills.folders, config.skills.max_body_chars).skills
    found: dict[str, HookConfig] = {}
    problems: list[SettingsError] = []
    for name, folder in skills.items():
        if not fits_any(config.skills.interceptors, name):
            continue
        agents = agents_with(name, config)
        try:
            command = command_of(folder)
        except SettingsError as error:
            problems.append(error)
            continue
        if command and agents:
            found[PREFIX + name] = HookConfig(
                events=("message_heard",),
                command=command,
                agents=agents,
                folder=folder.path,
            )
    return found, problems


def agents_with(skill: str, config: AppConfig) -> tuple[str, ...]:
    """Name the agents of the settings that have a skill."""
    return tuple(
        name for name, agent in config.agents.items() if fits_any(agent.skills, skill)
    )


def fits_any(patterns: tuple[str, ...], name: str) -> bool:
    """Tell whether one of these patterns fits a skill."""
    return any(tool_names.fits(pattern, name) for pattern in patterns)


def command_of(folder: SkillFolder) -> tuple[str, ...]:
    """Give a skill's program; nothing: it has none.

    Raises:
        SettingsError: what stands there is no command.
    """
    metadata = folder.head.get("metadata")
    inner = metadata.get(KEY) if isinstance(metadata, dict) else None
    given = folder.head.get(KEY, inner)
    if given is None:
        return ()
    try:
        parts = shlex.split(given) if isinstance(given, str) else given
    except ValueError:
        parts = []
    found = [x for x in parts if isinstance(x, str) and x]
    if not isinstance(parts, list) or not found or len(found) < len(parts):
        hint = f"for example: {KEY}: python3 gate.py"
        file = str(folder.path / SKILL_FILE)
        raise SettingsError(f"{KEY!r} is no command", file=file, hint=hint)
    return tuple(found)


def with_interceptors(
    config: AppConfig,
) -> tuple[dict[str, HookConfig], list[SettingsError]]:
    """Give all hooks: those of the settings, then those of skills."""
    own, problems = interceptors_of(config)
    return {**config.hooks, **own}, problems


Way = tuple[str | int, ...]

SERVERS = "mcpServers"
EXTRA = "mcp"
SOUNDS_SECRET = re.compile(
    r"(?i)(token|secret|password|passwd|api[_-]?key|authorization)"
)


def check_tools(app: AppConfig, environment: Mapping[str, str]) -> Iterator[Complaint]:
    """Name everything about servers and skills that does not go together."""
    prefixes: dict[str, str] = {}
    for name, server in app.mcp_servers.items():
        yield from check_server((SERVERS, name), server)
        if app.sandbox.mode != "none":
            yield from check_folders((SERVERS, name), server, app.sandbox.readable)
        yield from check_prefix((SERVERS, name), name, server, prefixes)
    if app.mcp_servers and importlib.util.find_spec(EXTRA) is None:
        text = "the extra 'mcp' is not installed"
        yield Complaint((SERVERS,), text, "pip install 'callboard[mcp]'")
    for name, agent in app.agents.items():
        for index, tool in enumerate(agent.tools):
            server_name = tool_names.server_of(tool)
            if (
                tool.startswith(tool_names.SERVER)
                and server_name not in app.mcp_servers
            ):
                text = f"there is no server {server_name!r} under [{SERVERS}]"
                hint = close_to(server_name, app.mcp_servers)
                yield Complaint(("agents", name, "tools", index), text, hint)
    yield from check_skills(app, environment)


def check_server(way: Way, server: McpServerConfig) -> Iterator[Complaint]:
    """Check one server by itself."""
    if bool(server.command) == bool(server.url):
        text = "is a program or an address: give command or url, one of the two"
        yield Complaint(way, text, 'for example: command = "npx"')
    if server.url:
        yield from check_url((*way, "url"), server)
    idle = ("args", "env", "readable", "writable") if server.url else ("headers",)
    for key in idle:
        if getattr(server, key):
            kind = "at an address" if server.url else "that is a program"
            yield Complaint((*way, key), f"a server {kind} has none", "take it out")
    yield from check_texts(way, server)


def check_folders(
    way: Way, server: McpServerConfig, given: Iterable[Path]
) -> Iterator[Complaint]:
    """Warn of folders in a command that the program cannot look into.

    Args:
        given: what every confined program may read.
    """
    may = [*given, *server.readable, *server.writable, *map(Path, SYSTEM)]
    may += [server.cwd] if server.cwd else []
    whole = [path.absolute() for path in may]
    for index, text in enumerate(server.args):
        path = Path(text)
        if not path.is_absolute() or not is_folder(path):
            continue
        if not any(path.is_relative_to(each) for each in whole):
            problem = f"{text} is not readable in the sandbox"
            hint = f'add it to readable, or to writable: readable = ["{text}"]'
            yield Complaint((*way, "args", index), problem, hint, is_warning=True)


def check_texts(way: Way, server: McpServerConfig) -> Iterator[Complaint]:
    """Warn of what seems to be a secret and stands in the open."""
    for key in ("env", "headers"):
        for name, text in getattr(server, key).items():
            if SOUNDS_SECRET.search(name) and not text.is_secret:
                hint = 'use { env = "NAME" }; before = "Bearer " goes before it'
                words = "looks like a secret, in the open"
                yield Complaint((*way, key, name), words, hint, is_warning=True)


def check_url(way: Way, server: McpServerConfig) -> Iterator[Complaint]:
    """Check the address of a server."""
    try:
        parts = urlsplit(server.url)
        host, has_login = parts.hostname, bool(parts.username or parts.password)
    except ValueError:
        parts, host, has_login = urlsplit(""), None, False
    if parts.scheme not in {"http", "https"} or not host:
        hint = 'for example: url = "https://tools.example.org/mcp"'
        yield Complaint(way, "is no http or https address", hint)
    elif has_login:
        hint = "send it in a header: headers = { Authorization = { env = … } }"
        yield Complaint(way, "holds a name or password, in the open", hint)


def check_prefix(
    way: Way, name: str, server: McpServerConfig, prefixes: dict[str, str]
) -> Iterator[Complaint]:
    """Check what the names of a server's tools begin with; note it."""
    prefix = server.prefix or prefix_of(name)
    if not tool_names.is_prefix(prefix):
        hint = f"letters, digits, - and single _, {tool_names.LONGEST_PREFIX} at most"
        yield Complaint((*way, "prefix"), f"{prefix!r} cannot begin a name", hint)
    elif prefix in prefixes:
        text = f"its tools would be called as those of {prefixes[prefix]!r}"
        yield Complaint(way, text, f'give it another one: prefix = "{prefix[:28]}-2"')
    prefixes[prefix] = name


def check_skills(app: AppConfig, environment: Mapping[str, str]) -> Iterator[Complaint]:
    """Check the folders of skills, and who has which."""
    if not app.skills.folders:
        for name, agent in app.agents.items():
            if agent.skills:
                text = "there are no skills"
                hint = 'name their folder: [skills] folders = ["skills"]'
                yield Complaint(("agents", name, "skills"), text, hint)
        return
    for index, folder in enumerate(app.skills.folders):
        if not is_folder(folder):
            text = f"there is no folder {folder}"
            hint = "the path starts at the folder of the settings file"
            yield Complaint(("skills", "folders", index), text, hint)
    found = read_folders(
        [each for each in app.skills.folders if is_folder(each)],
        app.skills.max_body_chars,
    )
    for problem in found.problems:
        yield Complaint(("skills", "folders"), str(problem), is_warning=True)
    for name, agent in app.agents.items():
        yield from check_patterns(
            ("agents", name, "skills"), agent.skills, found.skills
        )
    way: Way = ("skills", "servers")
    yield from check_patterns(way, app.skills.servers, found.skills)
    yield from check_brought(way, app, found.skills, environment)
    yield from check_interceptors(app, found.skills)


def check_interceptors(
    app: AppConfig, skills: Mapping[str, SkillFolder]
) -> Iterator[Complaint]:
    """Tell of programs that skills bring along: wrong ones, and those not run."""
    way: Way = ("skills", "interceptors")
    yield from check_patterns(way, app.skills.interceptors, skills)
    for name, folder in skills.items():
        try:
            command = command_of(folder)
        except SettingsError as error:
            yield Complaint(way, str(error), is_warning=True)
            continue
        if command and not fits_any(app.skills.interceptors, name):
            text = f"the skill {name!r} brings an interceptor; it is not asked"
            hint = f'if you have read it: interceptors = ["{name}"]'
            yield Complaint(way, text, hint, is_warning=True)


def check_patterns(
    way: Way, patterns: tuple[str, ...], skills: Iterable[str]
) -> Iterator[Complaint]:
    """Complain of patterns that no skill fits."""
    names = list(skills)
    for index, pattern in enumerate(patterns):
        if pattern != "*" and not any(tool_names.fits(pattern, n) for n in names):
            text = f"no skill fits {pattern!r}"
            yield Complaint((*way, index), text, close_to(pattern, names))


def check_brought(
    way: Way,
    app: AppConfig,
    skills: Mapping[str, SkillFolder],
    environment: Mapping[str, str],
) -> Iterator[Complaint]:
    """Tell of servers of skills: what is wrong or in doubt, and those not started."""
    may = bringing(app, skills)
    found, problems = read_all(may, environment)
    for problem in (*problems, *(x for each in found.values() for x in each.doubts)):
        yield Complaint(way, str(problem), is_warning=True)
    for name, folder in skills.items():
        if name not in may and brings_servers(folder):
            text = f"the skill {name!r} brings servers of tools; they are not started"
            hint = f'if you have read them: servers = ["{name}"]'
            yield Complaint(way, text, hint, is_warning=True)


def bringing(
    app: AppConfig, skills: Mapping[str, SkillFolder]
) -> dict[str, SkillFolder]:
    """Choose the skills whose servers may be started."""
    return {
        name: folder
        for name, folder in skills.items()
        if any(tool_names.fits(pattern, name) for pattern in app.skills.servers)
    }


def with_brought(
    settings: Settings[AppConfig], environment: Mapping[str, str]
) -> Settings[AppConfig]:
    """Add the secrets of servers that skills bring: as private as the settings' own."""
    app = settings.value
    skills = read_folders(app.skills.folders, app.skills.max_body_chars).skills
    found, _ = read_all(bringing(app, skills), environment)
    secrets, files = list(settings.secrets), list(settings.secret_files)
    for brings in found.values():
        secrets += brings.secrets
        files += brings.secret_files
    return msgspec.structs.replace(
        settings, secrets=tuple(secrets), secret_files=tuple(files)
    )
