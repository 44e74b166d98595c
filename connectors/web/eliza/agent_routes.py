"""Agents over HTTP: who can be spoken to; made, changed, put to rest and woken.

Who asks for changes needs the scope `operate`. An agent of the settings is changed in
their file; one that is made here has what `[hiring]` grants agents that are made, and
is led by a conductor as those are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connectors.web.eliza.characters import NOT_MEANT, character_in, wish_of
from connectors.web.eliza.desk import gone, ok
from connectors.web.eliza.errors import wrong
from connectors.web.eliza.memory_routes import agent_in
from connectors.web.eliza.shapes import iso

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from connectors.web.eliza.desk import Call, Desk
    from connectors.web.eliza.employing import Employee, Employing
    from connectors.web.eliza.shapes import Json


class AgentRoutes:
    """What is asked about agents.

    Args:
        employing: asked on the kernel's side only.
    """

    def __init__(self, employing: Employing) -> None:
        self._employing = employing

    def routes(self, desk: Desk) -> list[BaseRoute]:
        """Give the routes; to be asked after `/api/agents/worlds`."""
        one = "/api/agents/{agent}"
        return [
            desk.route("GET", "/api/agents", "read", self.all),
            desk.route("POST", "/api/agents", "operate", self.make),
            desk.route("GET", one, "read", self.show),
            desk.route("PATCH", one, "operate", self.change),
            desk.route("DELETE", one, "operate", self.remove),
            desk.route("POST", f"{one}/start", "operate", self.start),
            desk.route("POST", f"{one}/stop", "operate", self.stop),
            desk.route("GET", f"{one}/panels", "read", self.panels),
        ]

    async def all(self, call: Call) -> Response:
        """List the agents: those at work first, then by name."""
        agents = await call.ask(self._employing.all)
        return ok({"agents": [agent_shown(each) for each in agents]})

    async def show(self, call: Call) -> Response:
        """Show one, by its id or its name."""
        return ok(agent_shown(await self._one(call)))

    async def make(self, call: Call) -> Response:
        """Make an agent of a character."""
        wish = wish_of(character_in(call.body))
        made = await call.ask(self._employing.make, call.caller, wish)
        left_out = {"leftOut": list(wish.left_out)}
        shown = agent_shown(made)
        return ok(shown | {"character": shown} | left_out, 201)

    async def change(self, call: Call) -> Response:
        """Change an agent that was made; what is not said stays."""
        wish = wish_of(call.body)
        if wish.left_out:
            what = ", ".join(wish.left_out)
            raise wrong(f"agents here have none: {what}", wish.left_out[0])
        if not any(value for key, value in call.body.items() if key not in NOT_MEANT):
            raise wrong("says nothing that is to change", "name")
        agent = await self._one(call)
        changed = await call.ask(self._employing.change, call.caller, agent, wish)
        return ok(agent_shown(changed))

    async def remove(self, call: Call) -> Response:
        """Forget an agent that was made; its conversations stay."""
        await call.ask(self._employing.remove, await self._one(call))
        return gone()

    async def start(self, call: Call) -> Response:
        """Have an agent answer again."""
        return await self._put_to(call, is_active=True)

    async def stop(self, call: Call) -> Response:
        """Have an agent hear nothing more; it finishes what it has begun."""
        return await self._put_to(call, is_active=False)

    async def panels(self, call: Call) -> Response:
        """List the pages of an agent's own, of which there are none."""
        await self._one(call)
        return ok([])

    async def _put_to(self, call: Call, *, is_active: bool) -> Response:
        agent = await self._one(call)

        async def put() -> Employee:
            return await self._employing.put_to(agent, is_active=is_active)

        shown = agent_shown(await call.ask(put))
        text = f"{agent.name} is {shown['status']}"
        return ok(shown | {"message": text})

    async def _one(self, call: Call) -> Employee:
        return await call.ask(self._employing.one, agent_in(call))


def agent_shown(agent: Employee) -> Json:
    """Show an agent."""
    shown: Json = {
        "id": agent.id,
        "name": agent.name,
        "characterName": agent.name,
        "bio": agent.description,
        "status": "active" if agent.is_active else "inactive",
        "enabled": agent.is_active,
        "model": agent.model,
        "tools": list(agent.tools),
        "madeBy": agent.made_by,
    }
    if agent.prompt:
        shown["system"] = agent.prompt
    if agent.updated_at:
        shown["updatedAt"] = iso(int(agent.updated_at * 1000))
    return shown
