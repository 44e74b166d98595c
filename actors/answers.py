"""What a session says about one message, and the one commit that makes it so.

Pure: builds values, stores nothing. An answer settles its message, appends its
lines to the journal, and puts what is to be said, and what is handed on, into the
same transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from actors.carried import NOTHING, Carried, told
from actors.chapters import Chapter, Reset
from actors.deliveries import Delivery, Status, Trouble
from actors.delivering import delivery, numbered, pieces
from actors.handing import beside, hand_on_all
from actors.ledger import Run
from actors.messages import Inbound, Line, SentFile, Usage
from actors.rules import (
    markers,
    message_state,
    transcript,
)
from actors.rules.enclosing import names_of
from actors.rules.sanitizer import clean
from actors.rules.spans import lasting
from actors.rules.turn import ACKNOWLEDGEMENT
from actors.rules.voice import by_line, english
from runtime.fact_rows import FactChange
from runtime.rows import SettledState

if TYPE_CHECKING:
    from actors.persona import Persona
    from actors.protocol import Failed, Finished
    from actors.services import Services
    from runtime.ids import IdSource

FAILED = "[Task failed]"
TIMED_OUT = "[Task timed out]"
STOPPED = "[Task stopped]"
"""What the model reads later of a turn that failed (F120), or was stopped: the next
words are a new question then, and not the rest of that one."""

PLAIN_HISTORY = frozenset({"telegram"})
"""Platforms whose histories never tell which tools were used (F118)."""

CUT = "\n\n(cut: the answer was longer than {most} characters)"


class Joint(msgspec.Struct, frozen=True):
    """A further message that an answer is to."""

    inbound: Inbound
    how: Literal["merged", "steered"] = "merged"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """All that comes of one message."""

    inbound: Inbound
    settled: tuple[SettledState, str]
    """Its terminal state, and why; with `put_off` only why."""

    put_off: message_state.PutOff | None = None
    """Set if this is no answer yet: the turn will be begun again."""

    lines: tuple[Line, ...] = ()
    """For the history."""

    run: Run | None = None
    """The turn behind it."""

    resume: str = ""
    """By which the model may go on later."""

    ends: Reset | None = None
    """Set if the conversation is over with it."""

    remembered: tuple[FactChange, ...] = ()
    """What is remembered with it."""

    deliveries: tuple[Delivery, ...] = ()
    words: str = ""
    """What the agent itself says in them, while hooks are still to be asked of it."""

    handed: tuple[Inbound, ...] = ()
    """Messages for other agents."""

    carried: Carried = NOTHING
    """What else is stored with it: what its marks ask for."""

    also: tuple[Joint, ...] = ()
    """Further messages that share its fate, in order; see `joint.py`."""


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """Something said about one message beside its answer."""

    inbound: Inbound
    delivery: Delivery


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """Something for the journal that answers nobody."""

    chapter: Chapter
    """As of when it was made; lines that came after that are not in its counts."""

    messages: int
    """Lines of the conversation then."""

    resets: int
    """How many conversations had ended by then: if it is one more when this is
    stored, it is about nothing any more."""

    remembered: tuple[FactChange, ...] = ()
    """What is remembered with it."""


def aside(inbound: Inbound, key: str, text: str, status: Status = "") -> Aside:
    """Say something in the course of an answer, in the runtime's own words.

    Args:
        inbound: the message that is being answered.
        key: what is said twice under one key is said once.
        text: for the people in its chat.
        status: what it tells of the making of the answer; empty: something else.
    """
    said = msgspec.structs.replace(
        delivery(inbound, "", text),
        status=status,
        id=f"{inbound.id}:aside:{key}",
        is_aside=True,
        is_root=False,
        answers_left=1,  # it takes the place of none
    )
    return Aside(inbound=inbound, delivery=said)


def notice(
    inbound: Inbound,
    text: str,
    settled: tuple[SettledState, str],
    trouble: Trouble = "",
) -> Answer:
    """Answer with the runtime's own words; the history does not change."""
    said = delivery(inbound, "", text, trouble=trouble)
    return Answer(inbound=inbound, settled=settled, deliveries=(said,))


def localised(answer: Answer, services: Services) -> Answer:
    """Tell what the runtime itself says in the language of whoever reads it."""
    retell = services.retell(answer.inbound)
    if retell is english and all(type(x.text) is str for x in answer.deliveries):
        return answer
    said = tuple(
        # Why `str`: what is stored is plain, whatever it was told by.
        each
        if each.agent
        else msgspec.structs.replace(each, text=str(retell(each.text)))
        for each in answer.deliveries
    )
    return msgspec.structs.replace(answer, deliveries=said)


def localised_aside(aside: Aside, services: Services) -> Aside:
    """Tell it in the language of whoever asked; elsewhere as the settings say."""
    is_here = aside.delivery.address == aside.inbound.address
    retell = services.retell(aside.inbound) if is_here else services.voices.retell()
    text = str(retell(aside.delivery.text))
    said = msgspec.structs.replace(aside.delivery, text=text)
    return msgspec.structs.replace(aside, delivery=said)


def reminder(inbound: Inbound, persona: Persona) -> Answer:
    """Say a reminder as it was set, in the agent's name, and remember that."""
    text = f"⏰ {inbound.text}"
    return Answer(
        inbound=inbound,
        settled=("replied", "reminder"),
        lines=(
            Line("user", f"(A reminder that was set earlier is due: {inbound.text})"),
            Line("assistant", text, name=persona.name),
        ),
        deliveries=(delivery(inbound, persona.name, text),),
        words=text,
    )


def apology(inbound: Inbound, text: str, reason: str, ids: IdSource) -> Answer:
    """Give a message up, in the runtime's own words."""
    return leaving_ids(notice(inbound, text, ("dead", reason), "broken"), ids)


def leaving_ids(answer: Answer, ids: IdSource) -> Answer:
    """Leave its usual ids to the answer of a later attempt, if there may be one.

    What is put off is begun again, and what is dead may be tried again by hand.
    """
    if answer.put_off is None and answer.settled[0] != "dead":
        return answer
    return with_new_ids(answer, ids)


def with_new_ids(answer: Answer, ids: IdSource) -> Answer:
    """Give an answer whose deliveries take nobody else's ids."""
    said = tuple(
        msgspec.structs.replace(each, id=f"{each.id}:{ids.new()}")
        for each in answer.deliveries
    )
    return msgspec.structs.replace(answer, deliveries=said)


def cancelled(
    inbound: Inbound, asked: tuple[Line, ...], run: Run | None = None
) -> Answer:
    """Remember that a message was stopped, and tell whoever waits for it."""
    said = delivery(inbound, "", "(stopped)")
    return Answer(
        inbound=inbound,
        settled=("cancelled", "stopped"),
        lines=(*asked, Line("assistant", STOPPED)),
        deliveries=(msgspec.structs.replace(said, after_draft=True),),
        run=run,
    )


def failure(
    inbound: Inbound,
    asked: tuple[Line, ...],
    failed: Failed,
    settled: tuple[SettledState, str],
    run: Run | None = None,
) -> Answer:
    """Tell that there is no answer, and remember that there was none."""
    mark = TIMED_OUT if failed.trouble == "timeout" else FAILED
    said = delivery(inbound, "", failed.text, trouble=failed.trouble)
    said = msgspec.structs.replace(said, retry_at=failed.not_before)
    # A picture that a model cannot see would stand in the way of every later question.
    is_kept = failed.reason != "vision"
    return Answer(
        inbound=inbound,
        settled=settled,
        lines=(*asked, Line("assistant", mark)) if is_kept else (),
        deliveries=(said,),
        run=run,
    )


def deferral(
    inbound: Inbound,
    failed: Failed,
    put_off: message_state.PutOff,
    now: float,
    run: Run | None = None,
) -> Answer:
    """Tell that it will be tried again; that is said once, after the first failure."""
    text = (
        f"{failed.text}\n\nI will try again in {lasting(put_off.due_at - now)};"
        " /stop ends that."
    )
    said = delivery(inbound, "", text, trouble="waiting")
    said = msgspec.structs.replace(
        said,
        id=f"{inbound.id}:waiting",
        is_root=False,
        answers_left=1,  # it takes the place of none
    )
    return Answer(
        inbound=inbound,
        settled=("replied", failed.reason),
        put_off=put_off,
        deliveries=(said,) if put_off.is_first else (),
        run=run,
    )


def reply(
    inbound: Inbound,
    asked: tuple[Line, ...],
    finished: Finished,
    persona: Persona,
    services: Services,
    run: Run | None = None,
) -> Answer:
    """Take a model's text apart: words for people, work for other agents."""
    if inbound.chain.turns:
        persona = persona.spoken_to()
    parsed = markers.parse(finished.text, "assistant", persona.egress)
    for family, outcome, count in parsed.tally():
        services.metrics.mark(persona.name, family, outcome, count)
    carried = finished.carried
    is_quiet = parsed.says_nothing(persona.ack_chars(inbound))
    if is_quiet and not (finished.delegations or carried.files):
        return silence(inbound, asked, finished, persona, parsed.controls, run)
    persona = beside(persona, carried)
    handed, refusals = hand_on_all(inbound, finished, parsed, persona, services)
    say, retell = services.say(inbound), services.retell(inbound)
    dropped = by_line(parsed.notice, retell)
    notices = [*told(carried, say, retell), *dropped, *refusals]
    most_chars = services.limits.max_reply_chars
    text = _words(parsed.visible, handed, carried.files)
    if len(text) > most_chars:
        text = text[:most_chars] + retell(CUT.format(most=most_chars))
    if not (text.strip() or notices or carried.files):
        text = ACKNOWLEDGEMENT  # something was done, and nothing said
    # A platform takes no empty message; where only a notice is left, it is the answer.
    can = services.account(inbound.address.connector).abilities
    said = pieces(persona.name, text, notices, carried.files, (can, inbound.platform))
    deliveries = numbered(inbound, said, len(handed) + inbound.others, _told(run))
    sent = names_of(carried.files)
    heard = text if text.strip() else "\n".join(notices) or transcript.sent(sent)
    if persona.config.context.used_tools and inbound.platform not in PLAIN_HISTORY:
        heard = transcript.with_used_tools(heard, finished.used, sent)
    return Answer(
        inbound=inbound,
        settled=("replied", "ok"),
        lines=(*asked, Line("assistant", heard, name=persona.name)),
        deliveries=deliveries,
        # Hooks are asked of what goes out without a word, too.
        words=text if text.strip() else transcript.sent(sent),
        handed=tuple(handed),
        carried=carried,
        run=run,
        resume=finished.resume,
    )


def _told(run: Run | None) -> Usage | None:
    """Give a turn's tokens, if all its models told of them."""
    if run is None or not run.spent or any(each.is_reckoned for each in run.spent):
        return None
    return run.usage


def silence(
    inbound: Inbound,
    asked: tuple[Line, ...],
    finished: Finished,
    persona: Persona,
    controls: tuple[str, ...],
    run: Run | None = None,
) -> Answer:
    """Say nothing, because the agent wants it so (F263, F265, F266).

    Whoever counts the answers that are still to come is told all the same.
    """
    said = delivery(inbound, persona.name, "")
    heard = Line("assistant", " ".join(controls), name=persona.name)
    return Answer(
        inbound=inbound,
        settled=("replied", "silent"),
        # What is looked at again and again, and found well, is no conversation.
        lines=() if inbound.occasion else (*asked, heard),
        deliveries=(msgspec.structs.replace(said, kind="silence", usage=_told(run)),),
        carried=finished.carried,  # no marks, but maybe what somebody wrote (F144)
        run=run,
        resume=finished.resume,
    )


def _words(visible: str, handed: list[Inbound], files: tuple[SentFile, ...]) -> str:
    """Give what people read; an agent that only hands work on says so."""
    text = "" if files and visible.strip() == ACKNOWLEDGEMENT else visible
    if not text.strip() and handed:
        text = "\n".join(f"@{each.agent} {clean(each.text)}" for each in handed)
    return text
