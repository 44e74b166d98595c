"""Has carried out what a model asks for in its answer, as far as it may be.

Whoever is responsible for a family of marks decides, and gives what the commit of the
answer has to store; in the order of F235. Only what is no worse for being done twice
is done at once: how somebody wishes to be answered, and the operator's own files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import trio

from actors import arrangement, knowing, names, noting
from actors.acquaintance import ChangePerson
from actors.carried import NOTHING, Carried, joined
from actors.conducting import LATER, conduct
from actors.enclosing import NOTHING_SENT, Sending, enclose
from actors.jotting import jot
from actors.rules import actions, decision, languages, markers
from actors.rules.approvals import person as account_of
from actors.rules.confirming import Outcome
from actors.rules.reciting import in_earnest
from runtime.errors import KernelError, StoreError
from runtime.logs import EventLog
from runtime.ref import UNANSWERED

if TYPE_CHECKING:
    from actors.messages import Inbound
    from actors.persona import Persona
    from actors.rules.actions import Action
    from actors.rules.identity import Person
    from actors.services import Services
    from runtime.actor import Actor

LOG = EventLog("turn")

# Chosen: it writes one row; a disk that takes longer is ill.
CHANGED_WITHIN = 5.0

# Chosen: less than `REPORT_WITHIN`, by which a session gives a turn up as lost: an
# answer that is written must not be.
WITHIN = 20.0
"""Seconds that all of it may take."""

THE_REST = "the rest of it"


async def carry_out(
    text: str,
    inbound: Inbound,
    persona: Persona,
    services: Services,
    turn: Actor,
    sending: Sending = NOTHING_SENT,
) -> Carried:
    """Ask what becomes of the marks in an answer.

    Args:
        text: all the model said; nobody else's words are ever read so.
        inbound: what it answers.
        persona: who answers.
        services: what is shared.
        turn: on whose behalf others are asked.
        sending: what goes out with the answer already, and whether more may.
    """
    wants = in_earnest(markers.parse(text, "assistant", persona.egress).others)
    kit = services.memory
    is_own = inbound.occasion == "plan"
    if not (wants or is_own) and (kit is None or not kit.config.auto_save):
        return NOTHING
    parts: list[Carried] = []
    asker = (persona, services, turn)
    with trio.move_on_after(WITHIN) as scope:
        await _gather(wants, parts, inbound, asker)
        if is_own:
            parts.append(await _logged(text, inbound, asker))
        parts.append(await enclose(wants, sending, persona, services))
    if scope.cancelled_caught:
        LOG.warning("not all was carried out", correlation_id=inbound.correlation_id)
        late = Outcome(kind="refused", what=THE_REST, why=LATER)
        parts.append(Carried(outcomes=(late,)))
    return joined(parts)


async def _logged(
    text: str, inbound: Inbound, asker: tuple[Persona, Services, Actor]
) -> Carried:
    """Have the day's log say what an agent did by itself (F300)."""
    persona, services, turn = asker
    said = markers.parse(text, "assistant", persona.egress)
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
    """Have all families of marks decided, one after the other."""
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
            closed = Outcome(kind="conversation_closed", what="")
            parts.append(Carried(outcomes=(closed,), ends=True))


async def _change_person(
    wanted: actions.SwitchLanguage | actions.SetPersonality,
    inbound: Inbound,
    person: Person,
    turn: Actor,
) -> Carried:
    """Write down how somebody wishes to be answered (F249, F250).

    Why at once and not with the answer: it is theirs in all conversations, and doing it
    twice changes nothing.
    """
    if isinstance(wanted, actions.SwitchLanguage):
        code = languages.code_of(wanted.language)
        if not code:
            why = "I do not know this language"
            return Carried(
                outcomes=(Outcome(kind="refused", what=wanted.language, why=why),)
            )
        change = ChangePerson(account_of(inbound), language=code)
        outcome = Outcome(kind="language_set", what=languages.NAMES[code])
    else:
        change = ChangePerson(account_of(inbound), personality=wanted.style)
        outcome = Outcome(kind="personality_set", what=wanted.style)
    people = turn.find(names.PEOPLE)
    try:
        if people is not None:
            await people.ask(change, timeout=CHANGED_WITHIN)
            return Carried(outcomes=(outcome,))
    except (*UNANSWERED, KernelError, StoreError) as error:
        LOG.warning("person not changed", account=person.id, why=str(error))
    refused = Outcome(kind="refused", what=outcome.what, why=LATER)
    return Carried(outcomes=(refused,))
