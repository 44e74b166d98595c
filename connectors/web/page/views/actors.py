"""The live actor tree, and a button that kills a hanging actor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors import names
from actors.operations.warden import KillActor, Killed
from connectors.admin.tree import read_tree
from connectors.web.page.views.base import Refusal, View, read_view
from runtime.actor.ref import UNANSWERED

if TYPE_CHECKING:
    from connectors.web.page.views.base import Look, ViewRequest, ViewValues


async def load(asked: ViewRequest) -> ViewValues:
    """Show the tree or a branch, or ask for confirmation before killing an actor."""
    return await read_view(asked, read)


def read(look: Look) -> ViewValues:
    """Read the tree; `kill` in the query names the actor to confirm."""
    query = look.query
    top, wanted = query.get("top", ""), query.get("kill", "")
    actors = look.inside.system.actors()
    found = [each for each in actors if each.name == wanted]
    victim = read_tree(found).roots[0] if found else None
    forest = read_tree(actors, top=top, past=query.get("past", ""))
    return {"forest": forest, "top": top, "victim": victim, "wanted": wanted}


async def kill(asked: ViewRequest) -> str:
    """Kill an actor."""
    warden = asked.inside.system.find(names.WARDEN)
    order = KillActor(asked.form.get("name", ""), asked.person)
    try:
        if warden is None:
            raise Refusal("nobody is there who could do it; try again in a moment")
        killed: Killed = await warden.ask(order)
    except UNANSWERED as error:
        raise Refusal(f"not known whether it was done: {error}") from error
    if not killed.is_done:
        raise Refusal(killed.text)
    return killed.text


VIEW = View("actors", "Actors", load, every=2.0, actions={"kill": kill})
