"""The live actor tree, and the button that kills what hangs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors import names
from actors.warden import KillActor, Killed
from connectors.office.tree import read_tree
from connectors.web.page.looking import looked
from connectors.web.page.views import Refusal, View
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from connectors.web.page.looking import Look
    from connectors.web.page.views import Asked, Shown


async def load(asked: Asked) -> Shown:
    """Show the tree, a branch of it, or ask whether somebody is to be killed."""
    return await looked(asked, read)


def read(look: Look) -> Shown:
    """Read the tree; `kill` names whom the operator may want to kill."""
    query = look.query
    top, wanted = query.get("top", ""), query.get("kill", "")
    actors = look.inside.system.actors()
    found = [each for each in actors if each.name == wanted]
    victim = read_tree(found).roots[0] if found else None
    forest = read_tree(actors, top=top, past=query.get("past", ""))
    return {"forest": forest, "top": top, "victim": victim, "wanted": wanted}


async def kill(asked: Asked) -> str:
    """Have somebody killed."""
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
