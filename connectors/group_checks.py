"""What must fit together in routes and groups; asked by `settings.py`."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from connectors.model_checks import unknown
from runtime.config import Complaint, close_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from actors.config import RouteConfig
    from actors.group_config import GroupConfig
    from connectors.config import AppConfig
    from connectors.model_checks import Way

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
