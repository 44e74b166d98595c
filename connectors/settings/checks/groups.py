"""Checks routes, groups, and what busy conversations do with further messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from actors.config.routes import GroupConfig, RouteConfig
from actors.config.sessions import OVERRIDES, BufferingConfig, BusyPolicyConfig
from actors.messages.busy_policies import POLICY_RULES
from connectors.config.app import AppConfig, HttpConfig
from connectors.config.checks import Way, unknown
from runtime.config.loader import Complaint, close_to

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


def check_groups(way: Way, groups: GroupConfig, app: AppConfig) -> Iterator[Complaint]:
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
        yield from check_patterns(way, table, app)
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


def check_patterns(
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
