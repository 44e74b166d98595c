"""Actors: first those that are busy, wait or failed; the tree; killing by hand."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nsmallest

import msgspec

from actors import names
from actors.operations.warden import KillActor, Killed
from connectors.admin.display import make_safe
from connectors.admin.nodes import ReadActors, unreadable
from connectors.admin.queue import read_jobs
from connectors.admin.tree import read_tree, urgency
from connectors.web.page.views.base import (
    NOBODY_THERE,
    NOT_KNOWN,
    SERVES,
    Look,
    Refusal,
    View,
    ViewRequest,
    ViewValues,
    act_at,
    actor_label,
    place_text,
    read_view,
    works,
)
from connectors.web.page.words import beginning
from runtime import __version__
from runtime.actor.ref import UNANSWERED
from runtime.actor.statistics import ActorStatistics

SHOWS = ("now", "failed", "all")

MOST_LISTED = 100
MOST_WORKING = 20


async def load(asked: ViewRequest) -> ViewValues:
    """Show what is going on, the tree or a branch, or ask before killing an actor.

    Of all nodes; the query may name one.
    """
    circle, wanted = asked.inside.nodes, asked.query.get("node", "")
    own = "" if circle is None else circle.name
    values, question = await read_view(asked, read), ReadActors(dict(asked.query))
    groups = [NodeActors(own, values)]
    for each in await asked.inside.ask_others(question, wanted):
        found = each.read(dict[str, object])
        why = each.why or ("" if found else unreadable(each.node, __version__))
        groups.append(NodeActors(each.node.name, found or {}, why))
    groups = [x for x in groups if wanted in {"", x.name}] or groups
    counts = [
        msgspec.convert(x.values.get("counts", {}), dict[str, int]) for x in groups
    ]
    victims = [x for x in groups if x.values.get("victim")]
    return {
        **values,
        "groups": [{**empty_group(), **x.values, **x.named()} for x in groups],
        "counts": {name: sum(x.get(name, 0) for x in counts) for name in SHOWS},
        "victim": victims[0].values["victim"] if victims else None,
        "victim_node": victims[0].name if victims else "",
        "node": wanted,
        "own": own,
    }


class NodeActors(msgspec.Struct, frozen=True):
    """What one node shows of its actors."""

    name: str
    """Of the node; empty: there is only this process."""

    values: Mapping[str, object]
    why: str = ""
    """Why it shows none."""

    def named(self) -> dict[str, str]:
        """Give the name and the reason, as templates read them."""
        return {"node": self.name, "why": make_safe(self.why)}


def empty_group() -> dict[str, object]:
    """Give what a node shows that does not answer."""
    return {"forest": None, "nodes": [], "hidden": 0, "labels": {}}


def read(look: Look) -> ViewValues:
    """Read the actors of this process, and what agents work on anywhere."""
    return {**read_here(look), "working": working(look), "now": look.now}


def read_here(look: Look) -> dict[str, object]:
    """Read the actors here; `kill` in the query names the actor to confirm."""
    query = look.query
    top, wanted = query.get("top", ""), query.get("kill", "")
    find = query.get("find", "").strip()
    actors = look.inside.system.actors()
    show = query.get("show", "now")
    show = "all" if top else show if show in SHOWS else "now"
    victim = [each for each in actors if each.name == wanted]
    listed = [x for x in actors if find.casefold() in searched(x)] if find else actors
    chosen = listed if find else [each for each in listed if is_shown(each, show)]
    is_tree = show == "all" and not find
    forest = read_tree(actors, top=top, past=query.get("past", "")) if is_tree else None
    few = nsmallest(MOST_LISTED, chosen, key=urgency)
    return {
        "show": show,
        "find": find,
        "top": top,
        "forest": forest,
        "nodes": [] if is_tree else [node_of(each) for each in few],
        "hidden": 0 if is_tree else max(0, len(chosen) - len(few)),
        "counts": {
            name: sum(is_shown(each, name) for each in actors) for name in SHOWS
        },
        "victim": read_tree(victim).roots[0] if victim else None,
        "victim_label": actor_label(wanted),
        "wanted": wanted,
        "labels": labels(forest),
        "serves": sorted(SERVES),
    }


def searched(it: ActorStatistics) -> str:
    """Give the words by which an actor is found."""
    return f"{it.name} {it.kind} {actor_label(it.name)}".casefold()


def is_shown(it: ActorStatistics, show: str) -> bool:
    """Whether an actor belongs to a list: it works, waits or failed; or failed."""
    has_failed = bool(it.last_end or it.restarts) or it.state in {"down", "dead"}
    if show == "failed":
        return has_failed
    is_at_it = works(it) or it.depth > 0 or it.state != "running"
    return show == "all" or has_failed or is_at_it


def node_of(it: ActorStatistics) -> dict[str, object]:
    """Describe one actor without those below it."""
    node = read_tree([it]).roots[0]
    return {
        "name": node.name,
        "label": actor_label(node.name),
        "kind": node.kind,
        "state": node.state,
        "restarts": node.restarts,
        "depth": node.depth,
        "limit": node.limit,
        "handled": node.handled,
        "handling": node.handling,
        "busy_for": node.busy_for,
        "last_end": node.last_end,
        "refusal": node.refusal,
        "conversation": conversation_in(node.name),
    }


def conversation_in(name: str) -> str:
    """Give the conversation that an actor is; empty: it is none."""
    head, found, rest = name.partition("/sessions/")
    return rest if found and head.startswith(names.AGENTS) else ""


def labels(forest: object) -> dict[str, str]:
    """Give what each actor of a tree is called, by name."""
    found: dict[str, str] = {}
    below = list(getattr(forest, "roots", ()))
    while below:
        node = below.pop()
        found[node.name] = actor_label(node.name)
        below += node.children
    return found


def working(look: Look) -> list[dict[str, object]]:
    """List the messages that agents work on now, what takes longest first.

    So whatever comes in is added at the end, and moves no button.
    """
    with look.database.inspect() as rows:
        page = read_jobs(
            rows, ("running",), MOST_WORKING, look.complain, with_short=False
        )
    return [
        {
            "id": job.id,
            "who": job.sender_name or job.sender_id,
            "agent": job.agent,
            "place": place_text(job.connector, job.chat),
            "text": beginning(job.text),
            "seconds": max(0.0, look.now - row.started_at) if row.started_at else 0.0,
        }
        for job, row in reversed(list(zip(page.jobs, page.rows, strict=True)))
    ]


async def kill(asked: ViewRequest) -> str:
    """Kill an actor, at the node that the form names."""
    circle, node = asked.inside.nodes, asked.form.get("node", "")
    if circle is None or node in {"", circle.name}:
        return await kill_here(asked)
    ways = [way for way in circle.ways() if way.listed.name == node]
    if not ways:
        raise Refusal(asked.say("there is no node {node} now", node=node))
    return await act_at(asked, "actors/kill", ways)


async def kill_here(asked: ViewRequest) -> str:
    """Kill an actor of this process."""
    warden = asked.inside.system.find(names.WARDEN)
    order = KillActor(asked.form.get("name", ""), asked.person)
    try:
        if warden is None:
            raise Refusal(asked.say(NOBODY_THERE))
        killed: Killed = await warden.ask(order)
    except UNANSWERED as error:
        raise Refusal(asked.say(NOT_KNOWN, why=error)) from error
    if not killed.is_done:
        raise Refusal(killed.text)
    return killed.text


VIEW = View("actors", "Actors", load, every=2.0, actions={"kill": kill})
