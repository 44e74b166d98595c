"""Carries out the directives in a model's answer, as far as they are allowed.

The actor responsible for a family of directives decides, and gives the rows that are
stored with the answer. So an answer that is stopped, or never stored, changes nothing:
for example, `staff` decides about the agents that a conductor wants to make. Only
changes that may be repeated are made at once: a person's language and personality, and
the operator's own files.
"""

from __future__ import annotations

import msgspec
import trio

from actors import names
from actors.agents.hiring import Requester, name_of
from actors.agents.messages import Conduct
from actors.agents.persona import Persona
from actors.agents.rows import Conducted
from actors.journal.plan import NOTHING, Carried, joined
from actors.memory import notes as noting
from actors.memory.notebook import jot
from actors.messages.inbound import Inbound
from actors.messages.keys import account_of
from actors.people import lookup as knowing
from actors.people.identity import Person
from actors.people.lookup import ChangePerson
from actors.rules.markers import actions
from actors.rules.markers.actions import Action, Staffing
from actors.rules.markers.outcomes import ActionOutcome
from actors.rules.markers.parser import ParsedAnswer, in_earnest
from actors.rules.text import languages
from actors.schedule import decisions as decision, messages as arrangement
from actors.services import Services
from actors.turn.files import NOTHING_SENT, OutgoingFiles, enclose
from runtime.actor.actor import Actor
from runtime.actor.ref import UNANSWERED
from runtime.errors import KernelError, StoreError
from runtime.telemetry.logs import EventLog

STAFF_LOG = EventLog("staff")

# Chosen: `staff` only reads a table, and the person waits for the answer meanwhile.
DECIDED_WITHIN = 5.0
"""Seconds within which `staff` must decide."""

LATER = "nobody could do it just now; try again"
"""The reason if an actor did not decide in time."""


async def conduct(
    wishes: tuple[Staffing, ...],
    inbound: Inbound,
    persona: Persona,
    services: Services,
    turn: Actor,
) -> Carried:
    """Ask `staff` about the directives that make and change agents.

    Args:
        persona: who answers; only a conductor may do this.
    """
    maker = maker_of(inbound, persona, services)
    staff = turn.find(names.STAFF)
    if staff is not None:
        try:
            found: object = await staff.ask(
                Conduct(wishes, maker), timeout=DECIDED_WITHIN
            )
        except (KernelError, *UNANSWERED) as error:
            STAFF_LOG.warning(
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
    refused = (
        ActionOutcome(kind="refused", what=name_of(x), why=LATER) for x in wishes
    )
    return Carried(outcomes=tuple(refused))


def maker_of(inbound: Inbound, persona: Persona, services: Services) -> Requester:
    """Give who wants a change of agents, and by whose message."""
    account = account_of(inbound)
    return Requester(
        agent=persona.name,
        is_conductor=persona.config.is_conductor,
        person=account,
        is_owner=account in services.approvers,
        is_delegated=bool(inbound.chain.agents),
        message=inbound.id,
        now=services.clock.wall(),
    )


LOG = EventLog("turn")

# Chosen: it writes one row; a disk that takes longer is failing.
CHANGED_WITHIN = 5.0
"""Seconds within which a person's wish must be stored."""

# Chosen: less than the `REPORT_WITHIN` after which a session gives a turn up as lost.
WITHIN = 20.0
"""Seconds within which all directives must be decided."""

THE_REST = "the rest of it"


async def carry_out(
    said: ParsedAnswer,
    inbound: Inbound,
    persona: Persona,
    services: Services,
    turn: Actor,
    sending: OutgoingFiles = NOTHING_SENT,
) -> Carried:
    """Have the directives of an answer decided.

    Args:
        said: the answer; directives in other people's words never count.
        sending: the files that go out already, and whether more may.
    """
    wants = in_earnest(said.others)
    kit = services.memory
    is_own = inbound.occasion == "plan"
    if not (wants or is_own) and (kit is None or not kit.config.auto_save):
        return NOTHING
    parts: list[Carried] = []
    asker = (persona, services, turn)
    with trio.move_on_after(WITHIN) as scope:
        await _gather(wants, parts, inbound, asker)
        if is_own:
            parts.append(await _logged(said, inbound, asker))
        parts.append(await enclose(wants, sending, persona, services))
    if scope.cancelled_caught:
        LOG.warning("not all was carried out", correlation_id=inbound.correlation_id)
        late = ActionOutcome(kind="refused", what=THE_REST, why=LATER)
        parts.append(Carried(outcomes=(late,)))
    return joined(parts)


async def _logged(
    said: ParsedAnswer, inbound: Inbound, asker: tuple[Persona, Services, Actor]
) -> Carried:
    """Write into the day's log what an agent did by itself."""
    _, services, turn = asker
    words = "" if said.is_withheld else said.visible
    person = await knowing.person_of(turn, services, inbound)
    entry = decision.log_entry(inbound.text, words)
    return await noting.log(entry, inbound, person, asker)


async def _gather(
    wants: tuple[Action, ...],
    parts: list[Carried],
    inbound: Inbound,
    asker: tuple[Persona, Services, Actor],
) -> None:
    """Have all families of directives decided, one after the other."""
    persona, services, turn = asker
    person = await knowing.person_of(turn, services, inbound)
    source = noting.source_of(inbound, person, services)
    jotted = await jot(wants, inbound, persona, services)
    own = person.scopes if inbound.is_direct else ()
    notes = (*noting.notes_of(wants, own), *jotted.notes)
    noted = await noting.consider(notes, inbound, source, asker)
    outcomes = (*jotted.retold(notes, noted.outcomes), *jotted.outcomes)
    parts.append(msgspec.structs.replace(noted, outcomes=outcomes))
    wishes = arrangement.wishes_of(wants)
    if hires := tuple(each for each in wants if isinstance(each, actions.Staffing)):
        parts.append(await conduct(hires, inbound, persona, services, turn))
    if wishes:
        origin = arrangement.origin_of(inbound, persona, person.id)
        arranged = await arrangement.arrange(turn, wishes, origin)
        parts.append(
            Carried(
                entries=arranged.changes,
                outcomes=arranged.results,
                appointments=tuple(each.id for each in arranged.changes),
            )
        )
    for each in wants:
        if isinstance(each, actions.SwitchLanguage | actions.SetPersonality):
            parts.append(await _change_person(each, inbound, person, turn))
        elif isinstance(each, actions.ForgetConversation):
            closed = ActionOutcome(kind="conversation_closed", what="")
            parts.append(Carried(outcomes=(closed,), ends=True))


async def _change_person(
    wanted: actions.SwitchLanguage | actions.SetPersonality,
    inbound: Inbound,
    person: Person,
    turn: Actor,
) -> Carried:
    """Store a person's language or personality.

    Why at once and not with the answer: it holds in all their conversations, and doing
    it twice changes nothing.
    """
    if isinstance(wanted, actions.SwitchLanguage):
        code = languages.code_of(wanted.language)
        if not code:
            why = "I do not know this language"
            return Carried(
                outcomes=(ActionOutcome(kind="refused", what=wanted.language, why=why),)
            )
        change = ChangePerson(account_of(inbound), language=code)
        outcome = ActionOutcome(kind="language_set", what=languages.NAMES[code])
    else:
        change = ChangePerson(account_of(inbound), personality=wanted.style)
        outcome = ActionOutcome(kind="personality_set", what=wanted.style)
    people = turn.find(names.PEOPLE)
    try:
        if people is not None:
            await people.ask(change, timeout=CHANGED_WITHIN)
            return Carried(outcomes=(outcome,))
    except (*UNANSWERED, KernelError, StoreError) as error:
        LOG.warning("person not changed", account=person.id, why=str(error))
    refused = ActionOutcome(kind="refused", what=outcome.what, why=LATER)
    return Carried(outcomes=(refused,))
