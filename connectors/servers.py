"""Restarts those servers of tools whose settings have changed, and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors import names
from runtime.child import ChildSpec
from runtime.errors import DeclineStart, KernelError
from runtime.supervisor import RenewChild, StopChild

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from connectors.kit import Workbench
    from connectors.tool_sources import ToolSources
    from runtime.actor import Actor
    from runtime.ref import ActorRef

    Find = Callable[[str], ActorRef | None]

# Chosen: four times what a server may take to end.
WITHIN = 60.0

TOOLS = f"{names.ROOT}/tools"
SERVERS = f"{TOOLS}/servers"
SKILLS = f"{TOOLS}/skills"


def sources_spec(bench: Workbench) -> ChildSpec:
    """Say how the actors of servers and skills are started, as they are then."""

    def start() -> Actor:
        if bench.kit.further is None:
            raise DeclineStart
        return bench.kit.further.spec.start()

    return ChildSpec(name="tools", start=start, shutdown=30.0)


async def renew_servers(
    bench: Workbench, before: ToolSources | None, after: ToolSources | None
) -> None:
    """Have the servers run that there are to be.

    Args:
        bench: has in use what is to run.
        before: what ran.
        after: what is to run; None: there never were any.

    Raises:
        KernelError: a server does not end, or its actors do not start.
    """
    if after is None or before is after:
        return
    find, above = bench.find, sources_spec(bench)
    after.roll.specs = after.servers
    if find(TOOLS) is None:
        # It comes to stand behind all others, and so is stopped before them: a turn
        # that is not over when the drain is may then find its tools gone.
        await _ask(find, names.ROOT, RenewChild(above))
        return
    known: Mapping[str, object] = {} if before is None else before.settings
    for name in known.keys() - after.settings.keys():
        await _ask(find, SERVERS, StopChild(name, forget=True))
    for name, settings in after.settings.items():
        if known.get(name) != settings:
            await _ask(find, SERVERS, RenewChild(after.servers[name]))
    if before is None or before.brought != after.brought:
        await _ask(find, TOOLS, RenewChild(after.of_skills))
        await _ask(find, TOOLS, RenewChild(after.starter))


async def _ask(find: Find, above: str, order: RenewChild | StopChild) -> None:
    supervisor = find(above)
    if supervisor is None:
        raise KernelError(f"{above} is being restarted; tried again soon")
    await supervisor.ask(order, timeout=WITHIN)
