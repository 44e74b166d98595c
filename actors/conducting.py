"""Has carried out what a conductor wrote in its answer, as far as it may be.

Nothing is done here: `staff` decides, and gives what the commit of the answer has to
store. So an answer that is stopped, or never stored, has made nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors import names
from actors.carried import Carried
from actors.rules.approvals import person
from actors.rules.confirming import Outcome
from actors.rules.hiring import Maker, name_of
from actors.staff_rows import Conducted
from actors.staffing import Conduct
from runtime.errors import KernelError
from runtime.logs import EventLog
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.rules.actions import Staffing
    from actors.services import Services
    from runtime.actor import Actor

LOG = EventLog("staff")

# Chosen: it reads a table; whoever asked waits for the answer meanwhile.
DECIDED_WITHIN = 5.0

LATER = "nobody could do it just now; try again"
"""Why nothing came of what somebody should have decided."""


async def conduct(
    wishes: tuple[Staffing, ...],
    inbound: Inbound,
    persona: Persona,
    services: Services,
    turn: Actor,
) -> Carried:
    """Ask what becomes of the conductor's tags in an answer.

    Args:
        wishes: what they ask for.
        inbound: what the answer is to.
        persona: who answers; only a conductor's tags are read.
        services: time, and who the owners are.
        turn: on whose behalf `staff` is asked.
    """
    maker = maker_of(inbound, persona, services)
    staff = turn.find(names.STAFF)
    if staff is not None:
        try:
            found: object = await staff.ask(
                Conduct(wishes, maker), timeout=DECIDED_WITHIN
            )
        except (KernelError, *UNANSWERED) as error:
            LOG.warning(
                "wishes not decided",
                correlation_id=inbound.correlation_id,
                why=str(error),
            )
        else:
            if isinstance(found, Conducted):
                return Carried(
                    entries=found.entries,
                    records=found.records,
                    outcomes=found.outcomes,
                    made=found.made,
                    hires=bool(found.entries),
                )
    refused = (Outcome(kind="refused", what=name_of(x), why=LATER) for x in wishes)
    return Carried(outcomes=tuple(refused))


def maker_of(inbound: Inbound, persona: Persona, services: Services) -> Maker:
    """Say who wishes something, and at whose words."""
    account = person(inbound)
    return Maker(
        agent=persona.name,
        is_conductor=persona.config.is_conductor,
        person=account,
        is_owner=account in services.approvers,
        is_delegated=bool(inbound.chain.agents),
        message=inbound.id,
        now=services.clock.wall(),
    )
