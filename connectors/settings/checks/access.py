"""Checks who may write, and to whom: access, routes, groups, hired agents.

Also the languages and memories of people, what busy conversations do with further
messages, and what the agents that conductors make may have. A slip here shuts people
out or lets them in. A contradiction is a mistake; settings that shut everybody out are
warned of, with what to do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path

from actors.agents.hired import HiringTerms
from actors.agents.persona import Persona
from actors.agents.roster import HiringParts
from actors.config.access import AccessConfig
from actors.config.agents import AgentConfig
from actors.config.routes import GroupConfig, RouteConfig
from actors.config.sessions import OVERRIDES, BufferingConfig, BusyPolicyConfig
from actors.messages.busy_policies import POLICY_RULES
from actors.ports import Tool
from actors.rules.prompt.tools import SERVER
from actors.rules.text.globs import globs, is_wild
from actors.rules.text.translations import SOURCE
from connectors.chat.platforms import platform_of, reply_styles, setting_of
from connectors.config.app import AppConfig, ConnectorConfig, HttpConfig
from connectors.config.checks import Way, check_address, find_zone, unknown
from connectors.config.models import HASHING, OFF, OllamaEmbedderConfig
from connectors.config.shipped import shipped_settings
from runtime.config.loader import Complaint, close_to

PATTERNS = ("allowed", "allowed_roles", "denied", "allowed_chats")
MOST_CHARS = 256


def access_of(connector: ConnectorConfig) -> AccessConfig | None:
    """Say who may write by a connector; None: whoever its edge lets in."""
    access: AccessConfig | None = setting_of(connector, "access", None)
    if access is None and platform_of(connector).is_public:
        return AccessConfig()
    return access


def owners(config: AppConfig) -> frozenset[str]:
    """Say who runs this company: whom the settings list, and who may use its page."""
    let_in = {
        f"{name}/{person}"
        for name, connector in config.connectors.items()
        for person in platform_of(connector).owners(connector)
    }
    return frozenset(let_in.union(config.owners))


def approvers(config: AppConfig) -> frozenset[str]:
    """Say who may approve any tool call: owners, and whoever sits at the terminal."""
    further = {
        f"{name}/{person}"
        for name, connector in config.connectors.items()
        for person in platform_of(connector).approvers(connector)
    }
    return owners(config).union(further)


def check_access(app: AppConfig) -> Iterator[Complaint]:
    """Check who may write by each connector, and who may use which agent."""
    for name, connector in app.connectors.items():
        access = access_of(connector)
        if access is not None:
            way: Way = ("connectors", name, "access")
            owners = owners_of(name, app)
            can_pair = platform_of(connector).is_public
            yield from check_patterns(way, name, access)
            yield from check_denied(way, access, owners)
            yield from check_people(way, access)
            yield from check_nobody(way, access, owners, can_pair=can_pair)
            yield from check_groups(way, access)
    yield from check_agent_access(app)


def owners_of(connector: str, app: AppConfig) -> frozenset[str]:
    """Give the ids of the owners who write by a connector."""
    parted = (each.partition("/") for each in app.owners)
    return frozenset(sender for name, _, sender in parted if name == connector)


def check_patterns(way: Way, name: str, access: AccessConfig) -> Iterator[Complaint]:
    """Complain of patterns that can fit nobody as they are written."""
    for field in PATTERNS:
        given: tuple[str, ...] = getattr(access, field)
        for index, pattern in enumerate(given):
            place = (*way, field, index)
            if not pattern.strip() or pattern != pattern.strip():
                text = f"{pattern!r} fits nobody"
                yield Complaint(
                    place, text, "write an id, or a pattern, without blanks"
                )
            elif len(pattern) > MOST_CHARS:
                text = f"this pattern has {len(pattern)} characters"
                yield Complaint(place, text, f"{MOST_CHARS} are enough for any id")
            elif pattern.startswith(f"{name}/"):
                text = f"{pattern!r} names the connector, which is {name!r} anyway"
                hint = f"write {pattern.removeprefix(name + '/')!r}"
                yield Complaint(place, text, hint)
            elif pattern in given[:index]:
                yield Complaint(place, f"{pattern!r} stands here twice", "take one out")


def check_denied(
    way: Way, access: AccessConfig, owners: frozenset[str]
) -> Iterator[Complaint]:
    """Complain of denying whom another setting lets in, or everybody."""
    for index, pattern in enumerate(access.denied):
        place = (*way, "denied", index)
        if pattern in access.allowed:
            text = f"{pattern!r} is both allowed and denied"
            yield Complaint(place, text, "take it out of one of the two")
        elif pattern and set(pattern) == {"*"}:
            text = "everybody is denied"
            hint = 'take it out; people = "listed" lets in nobody who is not listed'
            yield Complaint(place, text, hint)
        elif denied := [each for each in sorted(owners) if globs((pattern,)).fit(each)]:
            text = f"{pattern!r} denies {denied[0]!r}, an owner, who may always write"
            yield Complaint(place, text, "take it out, or the owner")


def check_people(way: Way, access: AccessConfig) -> Iterator[Complaint]:
    """Complain of what means nothing beside another setting."""
    if access.code_again_after > access.code_for:
        text = "a code is told again only after it has ceased to hold"
        hint = f"at most {access.code_for:g}, as code_for"
        yield Complaint((*way, "code_again_after"), text, hint)
    for field in ("allowed", "allowed_roles"):
        if access.people == "anyone" and getattr(access, field):
            text = f'{field} means nothing where people = "anyone"'
            yield Complaint((*way, field), text, 'take it out, or people = "listed"')


def check_nobody(
    way: Way, access: AccessConfig, owners: frozenset[str], *, can_pair: bool
) -> Iterator[Complaint]:
    """Warn if nobody may write, and refuse codes where nobody can be told one."""
    place = (*way, "people")
    if access.people == "pairing" and not can_pair:
        hint = 'list them (people = "listed"), or give each a key of its own'
        yield Complaint(place, "nobody can be told a code over HTTP", hint)
    elif access.people == "listed" and is_nobody(access):
        who = "nobody but owners" if owners else "nobody"
        text = f'{who} may write here: people = "listed", and nobody is listed'
        codes = ' or people = "pairing" to let people in by a code,' * can_pair
        hint = f'set allowed = ["…"],{codes} or people = "anyone"'
        yield Complaint(place, text, hint, is_warning=True)


def is_nobody(access: AccessConfig) -> bool:
    """Whether no list lets anybody in, in no chat."""
    is_open = access.groups == "handle" and access.group_people == "everyone"
    return not (access.allowed or access.allowed_roles or is_open)


def check_groups(way: Way, access: AccessConfig) -> Iterator[Complaint]:
    """Complain of what is said of groups that are not handled."""
    if access.groups == "drop":
        if access.allowed_chats != ("*",):
            text = 'allowed_chats means nothing where groups = "drop"'
            yield Complaint((*way, "allowed_chats"), text, 'groups = "handle"')
        if access.group_people == "everyone":
            text = 'group_people means nothing where groups = "drop"'
            yield Complaint((*way, "group_people"), text, 'groups = "handle"')
    elif not access.allowed_chats:
        text = "no group is allowed"
        yield Complaint((*way, "allowed_chats"), text, 'write groups = "drop"')


def check_agent_access(app: AppConfig) -> Iterator[Complaint]:
    """Check that each rule can fit something, and is not hidden by one before."""
    everything: list[int] = []
    for index, rule in enumerate(app.access):
        way: Way = ("access", index)
        if everything:
            text = f"this is never asked: rule {everything[0] + 1} fits everything"
            yield Complaint(way, text, "put it before that one, or take it out")
        yield from check_named((*way, "agent"), rule.agent, app.agents)
        yield from check_named((*way, "connector"), rule.connector, app.connectors)
        for field in ("chat", "sender", "role"):
            if not getattr(rule, field).strip():
                text = f"an empty {field} fits nothing"
                yield Complaint((*way, field), text, 'write "*" for any')
        if {rule.agent, rule.connector, rule.chat, rule.sender, rule.role} == {"*"}:
            everything.append(index)


def check_named(way: Way, pattern: str, known: Collection[str]) -> Iterator[Complaint]:
    """Complain of a pattern that fits none of the names there are."""
    what = str(way[-1])
    if not is_wild(pattern):
        yield from unknown(way, what, pattern, known)
    elif not any(fnmatchcase(each, pattern) for each in known):
        yield Complaint(way, f"no {what} fits {pattern!r}", close_to(pattern, known))


CATALOGUES = "locale/*/LC_MESSAGES/callboard.po"


def check_languages(app: AppConfig) -> Iterator[Complaint]:
    """Check the language people are spoken to in, and what they may choose."""
    found = shipped_settings().glob(CATALOGUES)
    spoken = sorted({SOURCE, *(path.parent.parent.name for path in found)})
    if app.people.language not in spoken:
        text = f"there is no translation into {app.people.language!r}"
        yield Complaint(("people", "language"), text, f"known: {', '.join(spoken)}")
    for index, pattern in enumerate(app.commands.models):
        if pattern != "*" and not any(fnmatchcase(x, pattern) for x in app.models):
            text = f"no model fits {pattern!r}"
            hint = close_to(pattern, app.models)
            yield Complaint(("commands", "models", index), text, hint)


def check_embedders(app: AppConfig) -> Iterator[Complaint]:
    """Check how embedders are called and reached."""
    for name, embedder in app.embedders.items():
        if name in {HASHING, OFF}:
            text = f"{name!r} already means something as memory.embedder"
            yield Complaint(("embedders", name), text, "give it another name")
        is_ollama = isinstance(embedder, OllamaEmbedderConfig)
        yield from check_address(
            ("embedders", name, "base_url"),
            embedder.base_url,
            has_key=embedder.api_key is not None,
            example=OllamaEmbedderConfig().base_url
            if is_ollama
            else "https://api.openai.com/v1",
        )


def is_other_than_folder(path: Path) -> bool:
    """Whether something else has the name; not if nobody may look: writing tells."""
    try:
        return path.exists() and not path.is_dir()
    except OSError:
        return False


def check_log_folder(folder: str) -> Iterator[Complaint]:
    """Check that daily logs can have their folder."""
    way, hint = ("memory", "folder"), 'name a folder, for example "var/memory"'
    path = Path(folder)
    if not folder.strip():
        yield Complaint(way, "names no folder", hint)
    elif is_other_than_folder(path):
        yield Complaint(way, f"{folder} is no folder", hint)


WILDCARDS = frozenset("*?[")


def check_routes(app: AppConfig) -> Iterator[Complaint]:
    """Check that each route is to somebody, and can ever count."""
    for index, route in enumerate(app.routes):
        way: Way = ("routes", index)
        yield from unknown((*way, "agent"), "agent", route.agent, app.agents)
        yield from unknown_pattern((*way, "connector"), route.connector, app)
        if route.kind == "direct" and route.activation != "agent":
            text = 'is about groups, and kind = "direct" keeps the route out of them'
            yield Complaint((*way, "activation"), text, "take one of the two out")
        for earlier, other in enumerate(app.routes[:index]):
            if takes_all_of(other, route):
                text = f"never counts: routes[{earlier}] comes first and fits it all"
                hint = "put it before that one, or take it out"
                yield Complaint(way, text, hint, is_warning=True)
                break


def takes_all_of(first: RouteConfig, second: RouteConfig) -> bool:
    """Whether all that fits the second route surely fits the first."""
    return (
        first.connector in {"*", second.connector}
        and first.chat in {"*", second.chat}
        and first.kind in {"any", second.kind}
        and (not first.roles or is_part(second.roles, first.roles))
    )


def is_part(few: tuple[str, ...], many: tuple[str, ...]) -> bool:
    """Whether there are some, and all of them are among the others."""
    return bool(few) and set(few) <= set(many)


def unknown_pattern(way: Way, pattern: str, app: AppConfig) -> Iterator[Complaint]:
    """Complain of a route that fits no connector there is."""
    if not WILDCARDS.intersection(pattern):
        yield from unknown(way, "connector", pattern, app.connectors)
    elif pattern != "*" and not any(fnmatchcase(n, pattern) for n in app.connectors):
        text = f"no connector fits {pattern!r}"
        yield Complaint(way, text, close_to(pattern, app.connectors))


def check_collaboration(app: AppConfig) -> Iterator[Complaint]:
    """Check that agents may speak to each other where they are to be heard."""
    settings = app.collaboration
    for name in ("visible", "visible_chats"):
        if getattr(settings, name) and not settings.enabled:
            text = "means nothing: enabled = false keeps agents from asking each other"
            hint = "set enabled = true, or take it out"
            yield Complaint(("collaboration", name), text, hint, is_warning=True)


def check_group_config(
    way: Way, groups: GroupConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check when an agent answers in groups."""
    if groups.check_model:
        place = (*way, "check_model")
        yield from unknown(place, "model", groups.check_model, app.models)
    if groups.relevance_check and not groups.reply_window:
        text = "nothing is ever checked: it is about the reply window, and that is off"
        hint = "set reply_window, as in 5.0, or take it out"
        yield Complaint((*way, "relevance_check"), text, hint, is_warning=True)
    is_silent = groups.activation == "never" and not any(
        route.activation not in {"agent", "never"} for route in app.routes
    )
    if is_silent and groups.broadcast_check:
        text = 'nothing is ever checked: activation = "never" keeps the agent silent'
        hint = "take one of the two out"
        yield Complaint((*way, "broadcast_check"), text, hint, is_warning=True)
    for index, pattern in enumerate(groups.mention_patterns):
        if not pattern.strip():
            text = "an empty pattern calls nobody"
            yield Complaint((*way, "mention_patterns", index), text, "take it out")


def check_busy(app: AppConfig) -> Iterator[Complaint]:
    """Check busy policies, whom they are for, and when a turn counts as stuck."""
    tables: list[tuple[Way, BufferingConfig]] = [(("buffering",), app.buffering)]
    for index, table in enumerate(app.busy_policies):
        way: Way = ("busy_policies", index)
        yield from check_group_patterns(way, table, app)
        yield from check_reached(way, table, app.busy_policies[:index])
        tables.append((way, merged(app.buffering, table)))
    for way, whole in tables:
        yield from check_table(way, whole)
        if whole.policy != "serial" and not app.limits.max_waiting:
            text = "limits.max_waiting = 0 refuses all that comes during a turn"
            hint = "let at least one message wait"
            yield Complaint((*way, "policy"), text, hint, is_warning=True)
    yield from check_watchdog(app)


def merged(usual: BufferingConfig, table: BusyPolicyConfig) -> BufferingConfig:
    """Give what a table comes to."""
    values = {
        name: getattr(usual if getattr(table, name) is None else table, name)
        for name in OVERRIDES
    }
    return BufferingConfig(**values)


def check_table(way: Way, table: BufferingConfig) -> Iterator[Complaint]:
    """Check what one table says."""
    manner = POLICY_RULES[table.policy]
    if table.longest_debounce < table.debounce:
        text = f"is below debounce, {table.debounce:g} s"
        hint = "the longest wait holds the shortest one"
        yield Complaint((*way, "longest_debounce"), text, hint)
    idle = [
        ("debounce", table.debounce > 0 and not manner.gathers),
        ("note", table.note and not manner.notes),
        ("overflow", table.overflow == "summarise" and not manner.joins),
    ]
    for name, is_idle in idle:
        if is_idle:
            text = f"means nothing with the policy {table.policy!r}"
            hint = "see the comments in config/default.toml"
            yield Complaint((*way, name), text, hint, is_warning=True)


def check_group_patterns(
    way: Way, table: BusyPolicyConfig, app: AppConfig
) -> Iterator[Complaint]:
    """Check that a table is for somebody, and can be followed there."""
    for name, known in (("agent", app.agents), ("connector", app.connectors)):
        pattern: str = getattr(table, name)
        if not any(fnmatchcase(each, pattern) for each in known):
            text = f"no {name} fits {pattern!r}"
            yield Complaint((*way, name), text, close_to(pattern, known))
    connector = app.connectors.get(table.connector)
    if isinstance(connector, HttpConfig) and table.policy not in {None, "serial"}:
        text = "over HTTP each request waits for its own answer: always 'serial'"
        hint = "leave the table out"
        yield Complaint((*way, "policy"), text, hint, is_warning=True)


def check_reached(
    way: Way, table: BusyPolicyConfig, before: Sequence[BusyPolicyConfig]
) -> Iterator[Complaint]:
    """Check that no table before this one takes all that fits it."""
    for index, first in enumerate(before):
        pairs = (
            (first.agent, table.agent),
            (first.connector, table.connector),
            (first.chat, table.chat),
        )
        if all(one in {"*", other} for one, other in pairs):
            text = f"never counts: busy_policies[{index}] comes first and fits it all"
            hint = "put it before that one, or take it out"
            yield Complaint(way, text, hint, is_warning=True)
            return


def check_watchdog(app: AppConfig) -> Iterator[Complaint]:
    """Check that nothing counts as stuck that is only slow."""
    watchdog, longest = app.watchdog, app.tool_calls.tool_timeout
    way: Way = ("watchdog", "stuck_after")
    if 0 < watchdog.stuck_after < watchdog.stalled_after:
        text = f"is below stalled_after, {watchdog.stalled_after:g} s"
        yield Complaint(way, text, "a turn stalls before it is stuck")
    if 0 < watchdog.stuck_after <= longest:
        text = f"a tool may take {longest:g} s, and says nothing meanwhile"
        hint = "make it longer than tool_calls.tool_timeout"
        yield Complaint(way, text, hint, is_warning=True)


def terms_of(config: AppConfig, tools: Collection[str]) -> HiringTerms:
    """Say what the settings grant the agents that are made."""
    return HiringTerms(
        hiring=config.hiring,
        defaults=config.agent_defaults,
        settled={name: agent.model for name, agent in config.agents.items()},
        models=frozenset(config.models),
        tools=frozenset(tools),
    )


def hiring_of(config: AppConfig, tools: Mapping[str, Tool]) -> HiringParts:
    """Say what agents are made from that conductors make."""
    return HiringParts(terms_of(config, tools), partial(make_persona, config, tools))


def make_persona(
    config: AppConfig, tools: Mapping[str, Tool], name: str, agent: AgentConfig
) -> Persona:
    """Look up what such an agent may have: tools of this program, no servers."""
    return Persona(
        name=name,
        config=agent,
        zone=find_zone(agent.context.time_zone) or UTC,
        tools={tool: tools[tool] for tool in agent.tools if tool in tools},
        remembers=config.memory.enabled,
        has_projects=config.projects.folder is not None,
        reply_styles=reply_styles(),
        program_seconds=config.program_seconds,
    )


def configured_persona(
    config: AppConfig, tools: Mapping[str, Tool], name: str
) -> Persona:
    """Look up what an agent of the settings has: all but its files and servers.

    Who else is here, the team tells it (`make_team`).
    """
    agent = config.agents[name]
    return replace(
        make_persona(config, tools, name, agent),
        colleagues={each: config.agents[each].description for each in agent.delegates},
    )


def check_hiring(config: AppConfig, tools: Collection[str]) -> Iterator[Complaint]:
    """Check what is granted."""
    hiring = config.hiring
    for index, tool in enumerate(hiring.tools):
        place = ("hiring", "tools", index)
        if tool.startswith(SERVER):
            text = "tools of servers are for agents of the settings only"
            yield Complaint(place, text, "take it out of the list")
        else:
            yield from unknown(place, "tool", tool, tools)
            if tool == "web_search" and config.web_search.kind == "off":
                text = "there is no search engine for the tool 'web_search'"
                hint = 'set kind under [web_search], as in "searxng"'
                yield Complaint(place, text, hint)
    for index, pattern in enumerate(hiring.models):
        if not any(fnmatchcase(name, pattern) for name in config.models):
            text = f"no model fits {pattern!r}"
            hint = close_to(pattern, config.models)
            yield Complaint(("hiring", "models", index), text, hint)
    if hiring.who == "nobody":
        return
    if not any(agent.is_conductor for agent in config.agents.values()):
        text = "no agent is a conductor, so nobody makes others"
        hint = "set is_conductor = true for the one that is to"
        yield Complaint(("hiring", "who"), text, hint, is_warning=True)
